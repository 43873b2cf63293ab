"""Why an attack was not tried, in words for people: that is no zero."""

from __future__ import annotations

UNIFORM_PRIOR = "a uniform prior was asked for"
NO_MECHANISM = "it needs to know the mechanism: name it"
NO_LOG = "it needs a query log: give one"
NOT_ON_LOG = (
    "the log lacks some of what is attacked, so that nobody could find it there: give one that "
    "holds it, or add it (--add-originals)"
)
NO_ORDER = "the words of the variants are in random order, and the mechanism is not known"
RANDOM_ORDER = "the words of the variants are in random order"
WHOLE_TEXTS = "the mechanism replaces whole texts: there are no words to line up"
BY_GROUP = "a query is never named more often than what stands for it in the set"
REWRITTEN = "no attack here knows how this mechanism rewrites a text"
COMPUTED = "the mechanism computes what it releases: 'remade' computes it again"
DRAWN = "the mechanism draws what it releases: the same text gives other variants each time"
ANOTHER_LAW = (
    "this mechanism cannot have made these releases: name its parameters, its space and its output "
    "vocabulary as they were"
)
UNIT_VECTORS = "it reads noise around vectors of length 1 by one tower, and these are others"
WHOLE_RELEASE = "a release 'once' is read as a whole: fewer variants are a random part of it"
