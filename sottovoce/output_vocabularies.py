"""Which words of a space may be released, by name: also the words of a collection.

Where the collection that is searched is on this machine and public, only its own words can find
anything: the rest of the space is a waste of draws. The choice must not depend on a private text,
so neither may the collection: documents of one's own would tell of themselves by the words that are
released.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from sottovoce.collections import DEMO, FROM_PACKAGE, Document, load_collection, read_corpus
from sottovoce.spaces import vocabularies
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace
from sottovoce.text.words import ENGLISH, LANGUAGES, content_words

LEAST_WORDS = 1000
"""A search releases the words of its documents only if there are so many."""
CORPUS = "corpus:"
"""How the choice of the words of a file or folder of documents begins."""


def choose_output(space: WordSpace, choice: str) -> OutputVocabulary:
    """Choose the words of a space that may be released.

    ``demo`` and ``corpus:PATH``: those that the documents of a public collection hold, cut as a
    lexical engine cuts them (PATH may also be ``ir_datasets:ID``); for the other choices see
    ``spaces.choose_output``.
    """
    if not of_collection(choice):
        return vocabularies.choose_output(space, choice)
    return of_documents(space, _texts(choice), choice)


def of_documents(space: WordSpace, texts: Iterable[str], name: str) -> OutputVocabulary:
    """The words of public texts, each as popular as the number of texts that hold it.

    Function words are left out: they find nothing.
    """
    return _counted(name, vocabularies.of_texts(space, texts, content_words))


def _counted(name: str, counts: dict[int, int]) -> OutputVocabulary:
    ids = np.array(sorted(counts), dtype=np.int64)
    popularity = np.array([counts[word] for word in ids.tolist()], dtype=np.float64)
    return OutputVocabulary(name, ids, popularity if len(ids) else None)


def of_search(
    space: WordSpace, documents: Sequence[Document], collection: str, language: str = ENGLISH
) -> OutputVocabulary:
    """What a search releases: words of the documents on this machine, else all content words.

    ``language`` is the engine's. It is named as :func:`choose_output` names the
    words of the same collection. A collection of few words would leave too little to hide among.
    """
    if documents:
        texts = (f"{document.title}\n{document.text}" for document in documents)
        name = collection if collection == DEMO else CORPUS + collection
        cut = partial(content_words, language=language)
        counts = vocabularies.of_texts(space, texts, cut)
        if len(counts) >= LEAST_WORDS:
            return _counted(name, counts)
    everything = space.words(np.arange(space.size))
    function_words = LANGUAGES[language].function_words
    ids = np.flatnonzero([word.casefold() not in function_words for word in everything])
    return OutputVocabulary("content", ids)


def of_collection(choice: str) -> bool:
    """Whether a choice is that of the words of a collection."""
    return choice == DEMO or choice.startswith(CORPUS)


def _texts(choice: str) -> Iterator[str]:
    """The documents of a collection, title first."""
    name = choice.removeprefix(CORPUS)
    by_name = name == DEMO or name.startswith(FROM_PACKAGE)
    documents = load_collection(name).documents if by_name else read_corpus(name)
    return (f"{document.title}\n{document.text}" for document in documents)
