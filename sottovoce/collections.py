"""Collections: documents, queries, and judgments of which document answers which query.

Files are read a line at a time; errors name files and lines, never their content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError, UsageError, did_you_mean, need
from sottovoce.files import json_objects, read_lines

DEMO = "demo"
"""The collection, and the log, that come with sottovoce."""
FROM_PACKAGE = "ir_datasets:"
"""How the names of collections of the package ir_datasets begin."""
STRING_SOURCES = (
    "demo, a file (.txt, .jsonl or .tsv, each perhaps with .gz), a folder with queries.jsonl in "
    "it, or ir_datasets:ID"
)
"""What :func:`read_strings` reads, in words."""
_DEMO_FOLDER = Path(__file__).parent / "demo"


@dataclass(frozen=True, repr=False)
class Document:
    """A document of a collection."""

    doc_id: str
    title: str
    text: str

    def __repr__(self) -> str:
        return f"Document({len(self.text)} characters)"


@dataclass(frozen=True, repr=False)
class Collection:
    """Documents, queries by id, and grades (0 to 3) of documents by query id.

    Queries and judgments may be missing: then there is something to search, nothing to measure.
    """

    name: str
    documents: tuple[Document, ...]
    queries: Mapping[str, str]
    judgments: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        return f"Collection({self.name}, {len(self.documents)} documents)"


def load_collection(name: str | Path = DEMO) -> Collection:
    """The demo collection that comes with sottovoce, a folder, or ``ir_datasets:ID``.

    A folder holds corpus.jsonl and perhaps queries.jsonl and qrels.txt, each perhaps gzipped.
    """
    if str(name).startswith(FROM_PACKAGE):
        return _from_package(str(name).removeprefix(FROM_PACKAGE))
    folder = _folder(name)
    queries, judgments = _asked(folder)
    return Collection(
        name=str(name) if name == DEMO else folder.name,
        documents=tuple(read_corpus(folder)),
        queries=queries,
        judgments=judgments,
    )


def read_documents(name: str) -> Iterator[Document]:
    """The documents of ``demo``, of a folder or file, or of ``ir_datasets:ID``, one at a time."""
    if name.startswith(FROM_PACKAGE):
        return _package_documents(_package(name.removeprefix(FROM_PACKAGE)))
    return read_corpus(_DEMO_FOLDER if name == DEMO else name)


def load_judged_queries(name: str | Path = DEMO) -> dict[str, str]:
    """The queries of a collection that have judgments, by id; its documents are not read."""
    if str(name).startswith(FROM_PACKAGE):
        dataset = _package(str(name).removeprefix(FROM_PACKAGE))
        queries, judgments = _package_queries(dataset), _package_judgments(dataset)
    else:
        queries, judgments = _asked(_folder(name))
    return {query_id: text for query_id, text in queries.items() if query_id in judgments}


def _folder(name: str | Path) -> Path:
    folder = _DEMO_FOLDER if name == DEMO else Path(name).expanduser()
    if not folder.is_dir():
        raise UsageError(
            f"no collection '{name}': use demo, a folder with corpus.jsonl in it, or ir_datasets:ID"
        )
    return folder


def _asked(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """The queries and judgments of a folder, as far as there are."""
    queries, judgments = _find(folder, "queries.jsonl"), _find(folder, "qrels.txt")
    return (
        dict(read_queries(queries)) if queries else {},
        read_judgments(judgments) if judgments else {},
    )


def demo_log() -> list[str]:
    """Queries of all kinds, such as many people send: what an attacker would compare with."""
    return [line for _, line in read_lines(_DEMO_FOLDER / "log.txt")]


def read_queries(file: Path) -> Iterator[tuple[str, str]]:
    """Ids and texts from JSON lines with ``query_id`` and ``text``."""
    for place, fields in _objects(file):
        yield _string(fields, "query_id", place), _string(fields, "text", place)


def has_strings(source: str) -> bool:
    """Whether a source is there, as far as can be told without reading it."""
    found_by_name = source == DEMO or source.startswith(FROM_PACKAGE)
    return found_by_name or os.path.exists(os.path.expanduser(source))


def read_strings(source: Path | str) -> Iterator[str]:
    """Public strings: the demo log (``demo``), the queries of a collection, or those of a file.

    A file is text (a string a line), JSON lines with ``text``, or tab-separated values, of which
    the last column counts; each perhaps gzipped.
    """
    if source == DEMO:
        return iter(demo_log())
    path = Path(source).expanduser()
    if str(source).startswith(FROM_PACKAGE):
        return iter(_package_queries(_package(str(source).removeprefix(FROM_PACKAGE))).values())
    if path.is_dir():
        if (queries := _find(path, "queries.jsonl")) is None:
            raise UsageError(f"the folder {path} holds neither queries.jsonl nor queries.jsonl.gz")
        return (text for _, text in read_queries(queries))
    if not path.is_file():
        raise UsageError(f"strings are read from {STRING_SOURCES}: name one of these")
    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind == ".jsonl":
        return (_string(fields, "text", place) for place, fields in _objects(path))
    if kind in (".txt", ".tsv"):
        lines = (line for _, line in read_lines(path))
        return (line.rpartition("\t")[2] for line in lines) if kind == ".tsv" else lines
    raise UsageError(f"{path} is neither .txt, .jsonl nor .tsv (each perhaps with .gz): convert it")


def read_judgments(file: Path) -> dict[str, dict[str, int]]:
    """Grades by query and document, from lines ``query 0 document grade`` (TREC)."""
    judgments: dict[str, dict[str, int]] = {}
    for number, line in read_lines(file):
        try:
            query, _, document, grade = line.split()
            judgments.setdefault(query, {})[document] = int(grade)
        except ValueError:
            raise SottovoceError(
                f"line {number} of {file} is not 'query 0 document grade', with a whole number at "
                "the end"
            ) from None
    return judgments


def _package(name: str) -> Any:
    """A data set of the package ir_datasets."""
    why = "collections of ir_datasets need that package"
    ir_datasets = need("ir_datasets", None, why, "; it fetches what you ask for from the network")
    try:
        return ir_datasets.load(name)
    except KeyError:
        hint = did_you_mean(name, ir_datasets.registry, "its ids are listed at ir-datasets.com")
        raise UsageError(f"ir_datasets knows no collection '{name}': {hint}") from None


def _package_queries(dataset: Any) -> dict[str, str]:
    if not dataset.has_queries():
        return {}
    return {query.query_id: query.default_text() for query in dataset.queries_iter()}


def _package_judgments(dataset: Any) -> dict[str, dict[str, int]]:
    return dict(dataset.qrels_dict()) if dataset.has_qrels() else {}


def _package_documents(dataset: Any) -> Iterator[Document]:
    for doc in dataset.docs_iter():
        title = getattr(doc, "title", "") or ""
        # The text begins with the title, which would count twice.
        yield Document(doc.doc_id, title, doc.default_text().removeprefix(title).lstrip())


def _from_package(name: str) -> Collection:
    dataset = _package(name)
    return Collection(
        name=name,
        documents=tuple(_package_documents(dataset)),
        queries=_package_queries(dataset),
        judgments=_package_judgments(dataset),
    )


def read_corpus(path: Path | str) -> Iterator[Document]:
    """Read ``.jsonl`` files (``doc_id``, ``text``, perhaps ``title``) or ``.txt`` files.

    A folder stands for its corpus.jsonl or corpus.jsonl.gz. In a text file each line that is not
    blank is a document, and the number of the line its id. Both kinds may be gzipped (``.gz``).
    """
    file = _file(Path(path).expanduser())
    kind = Path(file.name.removesuffix(".gz")).suffix
    if kind == ".jsonl":
        return (_document(fields, place) for place, fields in _objects(file))
    if kind == ".txt":
        return (Document(str(number), "", line) for number, line in read_lines(file))
    raise UsageError(f"{file} is neither .jsonl nor .txt (each perhaps with .gz): convert it first")


def _file(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    if not path.is_dir():
        return path
    if corpus := _find(path, "corpus.jsonl"):
        return corpus
    raise UsageError(f"the folder {path} holds neither corpus.jsonl nor corpus.jsonl.gz")


def _find(folder: Path, name: str) -> Path | None:
    """A file of a folder, as it is or gzipped."""
    files = (folder / name, folder / f"{name}.gz")
    return next((file for file in files if file.is_file()), None)


def _objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file of JSON lines, each with its place in words."""
    lines, how = read_lines(file), "write one object a line"
    for number, fields in json_objects(lines, str(file), how=how, error=SottovoceError):
        yield f"line {number} of {file}", fields


def _document(fields: dict[str, Any], place: str) -> Document:
    return Document(
        doc_id=_string(fields, "doc_id", place),
        title=_string({"title": "", **fields}, "title", place),
        text=_string(fields, "text", place),
    )


def _string(fields: dict[str, Any], name: str, place: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise SottovoceError(f'{place} needs a "{name}" that is a string')
    return value
