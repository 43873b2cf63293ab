"""What is added by name: word spaces, WordNet, the strong encoder.

``catalogue.py`` says what there is, ``install.py`` fetches and adds it, ``local.py`` knows what is
on this machine, and ``word_lists.py`` reads the lists that word spaces are made of.
"""

from sottovoce.resources.catalogue import (
    CATALOGUE,
    DEFAULT,
    GLOVE_840B,
    STRONG,
    WORD_SPACE,
    WORDNET,
    Resource,
    find,
    named,
)
from sottovoce.resources.install import add, import_file
from sottovoce.resources.local import installed, listed, load_space

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "GLOVE_840B",
    "STRONG",
    "WORDNET",
    "WORD_SPACE",
    "Resource",
    "add",
    "find",
]
__all__ += ["GLOVE_840B", "import_file", "installed", "listed", "load_space", "named"]
