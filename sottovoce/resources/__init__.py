"""What is added by name: word spaces, WordNet, the strong encoder.

``catalogue.py`` says what there is, ``install.py`` fetches and adds it, and ``local.py`` knows what
is on this machine.
"""

from sottovoce.resources.catalogue import CATALOGUE, DEFAULT, STRONG, WORDNET, Resource, find, named
from sottovoce.resources.install import add, import_file
from sottovoce.resources.local import installed, listed, load_space

__all__ = ["CATALOGUE", "DEFAULT", "STRONG", "WORDNET", "Resource", "add", "find", "import_file"]
__all__ += ["installed", "listed", "load_space", "named"]
