"""spaCy: a component that puts what may be released into ``doc._.released``.

``nlp.add_pipe("sottovoce")`` finds it by the entry point of this package.
"""

# No postponed annotations here: spaCy reads them to check the configuration.

from typing import Any

from sottovoce.choices import UnknownPolicy
from sottovoce.errors import need
from sottovoce.mechanisms import mechanism as build_mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.resources import load_space
from sottovoce.sanitizing import Sanitizer
from sottovoce.sanitizing.linking import new_secret
from sottovoce.text import TextPipeline

need("spacy", "spacy", "the component needs spaCy")

from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc  # noqa: E402

NAME = "sottovoce"
COLUMN = "doc"
CONFIG: dict[str, Any] = {
    "mechanism": "cmp",
    "space": None,
    "unknown": "encode",
    "protect": "all",
    "deny": [],
    "consistent": False,
    "seed": None,
}


class Releasing:
    """Sets ``doc._.released``; the tokens of the document stay what they are, and private.

    It is None until the whole text has been replaced, and stays None if that fails.
    """

    def __init__(self, sanitizer: Sanitizer, consistent: bool = False) -> None:
        self.sanitizer, self.consistent = sanitizer, consistent
        self._documents = 0

    def __call__(self, doc: Doc) -> Doc:
        """The document, with what may be released."""
        doc._.released = None
        sanitizer = self._for_one_document() if self.consistent else self.sanitizer
        (released,), _ = sanitizer.texts(COLUMN, [doc.text], self._documents)
        self._documents += 1
        doc._.released = released
        return doc

    def _for_one_document(self) -> Sanitizer:
        """With a secret of its own: equal words get equal substitutes in this document alone."""
        known = self.sanitizer
        return Sanitizer(known.obfuscator, known.columns, new_secret(), known.deny)


def make_component(
    nlp: Language,  # noqa: ARG001 - spaCy gives these two to every factory
    name: str,  # noqa: ARG001
    mechanism: str,
    space: str | None,
    unknown: UnknownPolicy,
    protect: str,
    deny: list[str],
    consistent: bool,
    seed: int | None,
) -> Releasing:
    """The component for ``nlp.add_pipe("sottovoce", config={...})``.

    mechanism
        A name or spec, such as ``cmp:epsilon=10``.
    space
        The name or folder of the word space; the default one if None.
    unknown, protect
        Those of :class:`sottovoce.TextPipeline`.
    deny
        Words that are never released.
    consistent
        The same word gets the same substitute within a document. Weaker: which places hold equal
        words then shows.
    seed
        None: secure randomness. A whole number is for experiments, documents counted in order.
    """
    resources = {} if space is None else {"space": load_space(space)}
    obfuscator = Obfuscator(
        build_mechanism(mechanism, **resources),
        pipeline=TextPipeline(unknown=unknown, protect=protect),
        rng=seed,
    )
    return Releasing(Sanitizer(obfuscator, (COLUMN,), deny=frozenset(deny)), consistent)


Language.factory(NAME, func=make_component, assigns=["doc._.released"], default_config=CONFIG)
if not Doc.has_extension("released"):
    Doc.set_extension("released", default=None)
