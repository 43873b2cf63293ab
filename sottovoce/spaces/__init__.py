"""Word spaces: words, vectors, distances. This room knows nothing of privacy."""

from sottovoce.spaces.distances import Distances, Measure, Ranges
from sottovoce.spaces.formats import ImportReport, import_vectors
from sottovoce.spaces.nearest import Metric, Nearest
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.space_encoder import SpaceEncoder
from sottovoce.spaces.space_facts import SpaceFacts, describe
from sottovoce.spaces.store import SpaceWriter
from sottovoce.spaces.vocabularies import choose_output

__all__ = ["Distances", "ImportReport", "Measure", "Metric", "Nearest", "OutputVocabulary"]
__all__ += [
    "Ranges",
    "SpaceEncoder",
    "SpaceFacts",
    "SpaceWriter",
    "WordSpace",
    "choose_output",
    "describe",
]
__all__ += ["import_vectors"]
