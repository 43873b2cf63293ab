"""spaCy: what may be released of a document stands in doc._.released."""

from __future__ import annotations

import spacy


def main() -> None:
    """Two documents through a pipeline that has nothing but the component."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sottovoce", config={"mechanism": "cmp:epsilon=10"})
    for doc in nlp.pipe(["My doctor says it is melanoma.", "The bank wants the house."]):
        print(doc._.released)


if __name__ == "__main__":
    main()
