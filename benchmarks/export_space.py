"""Makes what the workers need of a space: words to obfuscate, and text files for the peers.

Run as ``python export_space.py NAME FOLDER [--texts]``; a process of its own, because a parent's
memory counts towards the peak that the system reports for its children.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

import sottovoce
from sottovoce.errors import SottovoceError
from sottovoce.spaces.space import WordSpace

SUPPLY, FREQUENT = 4000, 30_000
"""How many words to obfuscate, drawn from the most frequent ones (spaces are sorted so)."""
ROWS = 4096


def export(space: WordSpace, root: Path, *, texts: bool) -> Path:
    """Write the files that are not there yet; the folder is named after the space's hash."""
    folder = root / f"{space.name}-{space.sha256[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "space": space.name,
        "size": space.size,
        "dimension": space.dimension,
        "sha256": space.sha256,
        "words": words_to_obfuscate(space),
    }
    (folder / "facts.json").write_text(json.dumps(facts), "utf-8")
    if texts and not (folder / "word2vec.txt").exists():
        write_texts(space, folder)
    return folder


def words_to_obfuscate(space: WordSpace) -> list[str]:
    """Ordinary lower-case words, always the same ones for the same space."""
    frequent = space.words(range(min(FREQUENT, space.size)))
    ordinary = [word for word in frequent if word.isascii() and word.isalpha() and word.islower()]
    count = min(SUPPLY, len(ordinary))
    return [str(word) for word in np.random.default_rng(1).choice(ordinary, count, replace=False)]


def write_texts(space: WordSpace, folder: Path) -> None:
    """The same lines twice: for pyPANTERA (GloVe) and for mldp-text (word2vec: with a header)."""
    # Both readers split at any white space, so a word that holds some cannot be handed over.
    kept = [i for i, word in enumerate(space.words(range(space.size))) if word.split() == [word]]
    unfinished = [folder / f".{name}" for name in ("glove.txt", "word2vec.txt")]
    glove, word2vec = (path.open("w", encoding="utf-8") for path in unfinished)
    with glove, word2vec:
        word2vec.write(f"{len(kept)} {space.dimension}\n")
        for lines in blocks_of_lines(space, kept):
            write_all((glove, word2vec), lines)
    for path in unfinished:
        path.rename(folder / path.name.removeprefix("."))


def blocks_of_lines(space: WordSpace, kept: list[int]) -> Iterator[str]:
    """Lines ``word 0.1 0.2 …``, some thousands at a time."""
    # Seven digits: enough to give back the decimals that published vectors are made from.
    line = "%s" + " %.7g" * space.dimension + "\n"
    for start in range(0, len(kept), ROWS):
        ids = np.array(kept[start : start + ROWS])
        rows = zip(space.words(ids), space.vectors[ids].tolist(), strict=True)
        yield "".join(line % (word, *values) for word, values in rows)


def write_all(files: tuple[TextIO, ...], text: str) -> None:
    """Write the same text to each file."""
    for file in files:
        file.write(text)


def main(arguments: list[str]) -> int:
    """Export, and print the folder; on failure say why."""
    name, root = arguments[:2]
    try:
        folder = export(sottovoce.load_space(name), Path(root), texts="--texts" in arguments)
    except SottovoceError as error:
        print(error, file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
