"""Attacks on company: which of the strings that left together stands for what was asked.

Systems that send decoys were broken by what their decoys lack: a source that nobody can list, the
looks and subjects of what people ask, and a life of their own over time. Each of these attacks
reads one of them. Run them through :func:`sottovoce.privacy.attack_company`.
"""
