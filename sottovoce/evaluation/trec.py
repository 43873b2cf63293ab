"""Runs in the format of TREC: query Q0 document rank score tag, one document a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import whole_file

Run = Mapping[str, Mapping[str, float]]
"""Scores by query and document."""


def write_run(path: Path | str, run: Run, tag: str = "sottovoce") -> None:
    """Write a run, best documents first; ties keep their order. The file appears as a whole."""
    file = Path(path)
    try:
        with whole_file(file) as part, part.open("w", encoding="utf-8") as out:
            out.writelines(_lines(run, tag))
    except OSError as error:
        raise _cannot("write", file, error) from None


def _lines(run: Run, tag: str) -> Iterator[str]:
    for query, scores in run.items():
        ranking = sorted(scores, key=lambda document: -scores[document])
        for rank, document in enumerate(ranking, start=1):
            fields = (query, "Q0", document, str(rank), repr(float(scores[document])), tag)
            if any(len(field.split()) != 1 for field in fields):
                raise UsageError(
                    "an id or the tag is empty or holds a blank, which a run cannot say: choose "
                    "ids without blanks"
                )
            yield f"{' '.join(fields)}\n"


def read_run(path: Path | str) -> dict[str, dict[str, float]]:
    """Read a run; the documents of a query come in the order of their ranks."""
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise _cannot("read", file, error) from None
    except UnicodeDecodeError:
        raise SottovoceError(f"the run {file} is not UTF-8 text") from None
    ranked: dict[str, list[tuple[int, str, float]]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            query, _, document, rank, score, _ = line.split()
            ranked.setdefault(query, []).append((int(rank), document, float(score)))
        except ValueError:
            raise SottovoceError(
                f"line {number} of {file} is not 'query Q0 document rank score tag'"
            ) from None
    return {
        query: {document: score for _, document, score in sorted(documents)}
        for query, documents in ranked.items()
    }


def _cannot(do: str, file: Path, error: OSError) -> SottovoceError:
    return SottovoceError(f"cannot {do} the run {file}: {error.strerror}")
