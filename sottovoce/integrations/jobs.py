"""What travels to a worker and back: a small job, rows of text, an answer that never raises.

Clusters log failures together with the arguments of the task. So nothing here
raises on a worker: an error goes back as data, and what holds text does not show it.
"""

from __future__ import annotations

import json
import pickle
import threading
from functools import lru_cache
from pickle import PickleBuffer
from typing import Any

from threadpoolctl import threadpool_limits

from sottovoce import __version__, errors
from sottovoce.errors import SottovoceError
from sottovoce.files import parse_json
from sottovoce.sanitizing.executor import Done
from sottovoce.sanitizing.sanitizer import DatasetCounts, Sanitizer
from sottovoce.sanitizing.sources import Texts
from sottovoce.threads import set_threads

_opening = threading.Lock()


class Rows:
    """The cells of the chosen columns, from row ``first`` on.

    They pickle as a buffer beside the pickle itself, where the engine can take one: Dask logs a
    pickle that a worker cannot read.
    """

    def __init__(self, first: int, content: Any) -> None:
        self.first, self.content = first, content

    @classmethod
    def of(cls, texts: Texts, first: int) -> Rows:
        """Rows with these cells."""
        return cls(first, json.dumps(texts).encode())

    @property
    def texts(self) -> Texts:
        """The cells."""
        texts: Texts = parse_json(bytes(self.content))
        return texts

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        content = PickleBuffer(self.content) if protocol >= 5 else bytes(self.content)
        return Rows, (self.first, content)

    def __repr__(self) -> str:
        return f"Rows(from {self.first} on)"


class Job:
    """A sanitizer as it is sent to workers: a few kilobytes, opened once in each process."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self.version = __version__
        try:
            self.content = pickle.dumps(sanitizer)
        except Exception as error:
            raise SottovoceError(
                f"{sanitizer.obfuscator.mechanism.name} cannot be sent to other processes "
                f"({type(error).__name__}): work without --on and --workers"
            ) from None

    def sanitizer(self) -> Sanitizer:
        """The sanitizer, in this process."""
        if self.version != __version__:
            raise SottovoceError(
                f"a worker has sottovoce {__version__}, this machine {self.version}: install the "
                "same version everywhere"
            )
        with _opening:
            return _opened(self.content)

    def ready(self) -> str:
        """Why this process cannot do the job; empty if it can."""
        try:
            self.sanitizer()
        except Exception as error:
            return str(error) if isinstance(error, SottovoceError) else type(error).__name__
        return ""

    def __call__(self, rows: Rows) -> bytes:
        """The answer for some rows: new texts and counts, or what went wrong."""
        try:
            texts, counts = self.sanitizer().rows(rows.texts, rows.first)
            return json.dumps({"texts": texts, "counts": counts.to_dict()}).encode()
        except SottovoceError as error:
            return _failure(type(error).__name__, str(error))
        except Exception as error:
            # The cause could name a word: say what kind of error it was, and nothing of it.
            return _failure(
                "SottovoceError",
                f"a worker failed ({type(error).__name__}) after row {rows.first}; nothing of "
                "these rows was released",
            )

    def __repr__(self) -> str:
        return "Job()"


def done(answer: bytes, rows: int) -> Done:
    """The texts and counts of an answer for so many rows; raises what went wrong."""
    content = parse_json(answer)
    if "failed" in content:
        kind = getattr(errors, content["failed"], SottovoceError)
        raise kind(content["message"])
    texts, counts = content["texts"], DatasetCounts(**content["counts"])
    if counts.rows != rows or any(len(cells) != rows for cells in texts):
        raise SottovoceError("a worker gave back other rows than it got; none of them was written")
    return texts, counts


def _failure(kind: str, message: str) -> bytes:
    return json.dumps({"failed": kind, "message": message}).encode()


@lru_cache(maxsize=2)
def _opened(content: bytes) -> Sanitizer:
    """One sanitizer for all tasks of a process, on one core: the engine fills the others.

    BLAS is held to one thread for good. Tasks in several threads of one process would otherwise
    lift each other's limit, and BLAS rounds differently with more threads.
    """
    set_threads(1)
    threadpool_limits(1, user_api="blas")
    sanitizer: Sanitizer = pickle.loads(content)  # noqa: S301 - as the engine read the whole job
    return sanitizer
