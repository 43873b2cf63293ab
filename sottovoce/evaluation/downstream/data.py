"""Files of tasks: texts with labels, or questions with candidate answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.collections import Collection
from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, json_objects, numbered_lines, read_text
from sottovoce.types import BoolArray, IntArray

HOW = (
    "give CSV or JSON lines with text and label (classification), or with question, answer and "
    "label 1 or 0, a candidate a line (ranking)"
)
RELEVANT = {"1": True, "true": True, "0": False, "false": False}

Row = tuple[str, dict[str, str]]
"""Where a row stands, in words, and its fields."""


@dataclass(frozen=True, repr=False)
class LabelledTexts:
    """Texts and their labels."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise UsageError(
                f"each text has a label: there are {len(self.texts)} texts, {len(self.labels)} "
                "labels"
            )

    def sample(self, size: int) -> LabelledTexts:
        """``size`` of them, always the same ones, in their order."""
        rows = chosen_rows(len(self), size)
        return LabelledTexts(
            tuple(self.texts[row] for row in rows), tuple(self.labels[row] for row in rows)
        )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"LabelledTexts({len(self)} texts, {len(set(self.labels))} labels)"


@dataclass(frozen=True, repr=False)
class Candidates:
    """One question with its candidate answers, of which some are right."""

    question: str
    answers: tuple[str, ...]
    relevant: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"Candidates({len(self.answers)} answers, {sum(self.relevant)} of them right)"


@dataclass(frozen=True, repr=False)
class Questions:
    """Questions with candidates. Those where no order could be better than another are left out."""

    asked: tuple[Candidates, ...]
    left_out: int = 0

    def sample(self, size: int) -> Questions:
        """``size`` of them, always the same ones, in their order."""
        rows = chosen_rows(len(self), size)
        return Questions(tuple(self.asked[row] for row in rows), self.left_out)

    @cached_property
    def answers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(answer for asked in self.asked for answer in asked.answers))

    @cached_property
    def places(self) -> list[IntArray]:
        """For each question, where its candidates stand among the answers."""
        place = {answer: number for number, answer in enumerate(self.answers)}
        return [np.array([place[answer] for answer in asked.answers]) for asked in self.asked]

    @cached_property
    def relevant(self) -> list[BoolArray]:
        """For each question, which candidates are right."""
        return [np.array(asked.relevant) for asked in self.asked]

    def __len__(self) -> int:
        return len(self.asked)

    def __repr__(self) -> str:
        return f"Questions({len(self)} questions)"


Task = LabelledTexts | Questions


def read_task(file: Path | str) -> Task:
    """The task in a file (``-`` is standard input): CSV or JSON lines, perhaps gzipped.

    Its columns say which task it is; other columns are left alone.
    """
    content = read_text(file)
    start = content.lstrip()[:1]
    if not start:
        raise UsageError(f"the file is empty: {HOW}")
    rows = list(_from_json(content) if start == "{" else _from_csv(content))
    if not rows:
        raise UsageError(f"the file holds no row: {HOW}")
    if {"question", "answer"} <= rows[0][1].keys():
        return _questions(rows)
    texts = tuple(_field(row, "text") for row in rows)
    return LabelledTexts(texts, tuple(map(_label, rows)))


def judged_questions(
    collection: Collection, grade: int = 2, candidates: int | None = None
) -> Questions:
    """The queries of a collection; candidates are its judged documents, right from ``grade`` on.

    With ``candidates`` each question has so many: half of them right, or as many as there are, and
    the others any documents that nobody judged right, as data sets of questions have them. They are
    always the same ones.
    """
    text = {document.doc_id: document.text for document in collection.documents}
    grouped = {
        query: {text[doc_id]: given >= grade for doc_id, given in grades.items() if doc_id in text}
        for query_id, grades in collection.judgments.items()
        if (query := collection.queries.get(query_id)) is not None
    }
    if candidates is not None:
        rng, texts = Generator(PCG64(0)), list(text.values())
        grouped = {
            query: _half_right(judged, texts, candidates, rng) for query, judged in grouped.items()
        }
    return _measurable(grouped)


def _half_right(
    judged: dict[str, bool], texts: Sequence[str], size: int, rng: Generator
) -> dict[str, bool]:
    """``size`` candidates: right ones, and any texts that are not right."""
    right = [text for text, is_right in judged.items() if is_right]
    chosen = [right[row] for row in chosen_rows(len(right), max(1, size // 2))]
    never = {*right}
    at_random = (texts[row] for row in rng.permutation(len(texts)))
    wrong = islice((text for text in at_random if text not in never), size - len(chosen))
    return dict.fromkeys(chosen, True) | dict.fromkeys(wrong, False)


def _questions(rows: Sequence[Row]) -> Questions:
    grouped: dict[str, dict[str, bool]] = {}
    for row in rows:
        question, answer, label = (_field(row, "question"), _field(row, "answer"), _label(row))
        if label.lower() not in RELEVANT:
            raise UsageError(f"the label of {row[0]} is not 1 (a right answer) or 0: {HOW}")
        if not question.strip():
            raise UsageError(f"the question of {row[0]} is blank: {HOW}")
        grouped.setdefault(question, {})[answer] = RELEVANT[label.lower()]
    return _measurable(grouped)


def _measurable(grouped: dict[str, dict[str, bool]]) -> Questions:
    """The questions with a right and a wrong candidate."""
    asked = tuple(
        Candidates(question, tuple(judged), tuple(judged.values()))
        for question, judged in grouped.items()
        if len(set(judged.values())) == 2
    )
    if not asked:
        raise UsageError(
            "no question has a right and a wrong answer among its candidates: nothing can be "
            "measured"
        )
    return Questions(asked, len(grouped) - len(asked))


def _field(row: Row, name: str) -> str:
    place, fields = row
    if name not in fields:
        raise UsageError(f"{place} has no {name}: {HOW}")
    return fields[name]


def _label(row: Row) -> str:
    label = _field(row, "label").strip()
    if not label:
        raise UsageError(f"the label of {row[0]} is blank: {HOW}")
    return label


def _from_json(content: str) -> Iterator[Row]:
    for number, row in json_objects(numbered_lines(content), how=HOW):
        # A label may be a text or a number.
        fields = {key: value for key, value in row.items() if isinstance(value, str | int | float)}
        yield f"line {number} of the file", {key: str(value) for key, value in fields.items()}


def _from_csv(content: str) -> Iterator[Row]:
    quoting = "put texts with commas in quotes"
    table = CsvTable(content, how=HOW, quoting=quoting, fold_header=True)
    if not {"question", "answer", "label"} <= set(table.header):
        table.require("text", "label")
    for line, row in table:
        yield f"the row that ends in line {line} of the file", row


def chosen_rows(count: int, size: int) -> list[int]:
    """``size`` of ``count`` rows, always the same ones, ascending."""
    if size < 1:
        raise UsageError("a limit is at least 1")
    order = Generator(PCG64(0)).permutation(count)
    rows: list[int] = np.sort(order[:size]).tolist()
    return rows
