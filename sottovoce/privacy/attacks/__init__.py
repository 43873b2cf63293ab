"""Attacks: what can be read off releases, word by word, or by searching a log of queries.

Run them through :func:`sottovoce.privacy.attack`.
"""
