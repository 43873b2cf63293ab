"""What is done unless something else is asked for, on the command line, in the app, in Python.

Only names of choices are imported, so that the command line can show its help at once. Parameters
of a mechanism have their defaults in the mechanism itself; a search has an epsilon of its own.
"""

from __future__ import annotations

from sottovoce.choices import VoiceId

MECHANISM = "cmp"
SEARCH_EPSILON = 7.5
"""That of a search by ``cmp`` which says nothing else. It finds what epsilon 10 found before
searches were fitted to their documents, and a log with the query in it names it half as often."""
VOICE: VoiceId = "murmur"
"""That of agents, and of the app where no public queries fit: as a search that says nothing."""
VARIANTS = 20
"""Queries that a search sends."""
TOP = 10
"""Hits that a search shows."""
COLLECTION, ENGINE, RERANKER = "demo", "bm25", "auto"
PRIOR = 0.5
"""How much a search of documents on this machine prefers their frequent words, where the mechanism
adds noise: see :func:`sottovoce.search.layout.fitted_to`."""
DEPTH = 100
"""Documents that are taken from each answer."""
STORE_DEPTH = 1000
"""Documents that a store of vectors is asked for: it is asked once, and noise moves the true ones
down. On DL'19 at epsilon 60 that finds .54 (nDCG@10), 100 of them .42, with the same risk."""
DEMO_DEPTH = 10
"""The same for the demo collection, which has only 718 documents.

100 of each answer pool more than half of them, and then any queries will do: 20 queries from
``cmp`` at epsilon 10 give an nDCG@10 of .64 (re-ranker light), 20 unrelated ones .55. With 10 it is
.53 and .25, so that one can see what privacy costs.
"""


def usual_depth(collection: str, *, remote: bool) -> int:
    """Documents to take from each answer of an engine; a remote one searches its own documents."""
    return DEMO_DEPTH if collection == COLLECTION and not remote else DEPTH
