"""scikit-learn: a transformer of texts, for pipelines and column transformers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from sottovoce.errors import UsageError, need
from sottovoce.guarantees import Guarantee
from sottovoce.integrations.tables import sanitize_frame
from sottovoce.mechanisms import Mechanism
from sottovoce.mechanisms import mechanism as build_mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import DatasetCounts, Report, Sanitizer
from sottovoce.text import TextPipeline

need("sklearn", "sklearn", "the transformer needs scikit-learn")

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

ONE_COLUMN = "text"
OTHER_COLUMNS = "these are not the columns that the transformer was fitted to: fit it to them"


class TextObfuscator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replaces the words of texts by what a mechanism draws for them.

    Takes a list or series of texts, or a table all of whose columns are texts, and gives back the
    same kind. It learns nothing from texts. Each call of ``transform`` is a release of its own,
    and counts as one.

    mechanism
        A name or spec, such as ``cmp:epsilon=10``, or a mechanism.
    epsilon
        If given, wins over that of ``mechanism``: so that a search over parameters can set it.
    pipeline
        How texts are cut, and which words are protected; as the mechanism's paper has it if None.
    deny
        Words that are never released.
    random_state
        None: secure randomness. A whole number: reproducible, for experiments only, which
        ``seeded_`` and ``guarantee_`` say; then each call draws the same.
    """

    def __init__(
        self,
        mechanism: str | Mechanism = "cmp",
        *,
        epsilon: float | None = None,
        pipeline: TextPipeline | None = None,
        deny: tuple[str, ...] = (),
        random_state: int | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.pipeline = pipeline
        self.deny = deny
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the mechanism; nothing is learned."""
        mechanism = self._mechanism()
        pipeline = self.pipeline or TextPipeline(protect=mechanism.protects)
        obfuscator = Obfuscator(mechanism, pipeline=pipeline, rng=self.random_state)
        columns = _columns(X)
        self.sanitizer_ = Sanitizer(obfuscator, columns, deny=frozenset(self.deny))
        self.n_features_in_ = len(columns)
        if getattr(X, "ndim", 1) == 2 and hasattr(X, "columns"):
            self.feature_names_in_ = np.array(columns, dtype=object)
        return self

    def _mechanism(self) -> Mechanism:
        if isinstance(self.mechanism, str):
            given = {} if self.epsilon is None else {"epsilon": self.epsilon}
            return build_mechanism(self.mechanism, **given)
        if self.epsilon is None:
            return self.mechanism
        return replace(self.mechanism, epsilon=self.epsilon)  # type: ignore[call-arg]

    def transform(self, X: Any) -> Any:
        """New texts; nothing comes out if one of them cannot be replaced."""
        return self.release(X)[0]

    def release(self, X: Any) -> tuple[Any, Report]:
        """The same, with a report: what changed, what stayed in clear, what is promised."""
        check_is_fitted(self, "sanitizer_")
        released, counts = self._frame(X) if hasattr(X, "iloc") else self._array(X)
        return released, Report(self.sanitizer_, counts)

    def _frame(self, X: Any) -> tuple[Any, DatasetCounts]:
        """Of pandas: a series or a data frame."""
        frame = X.to_frame(ONE_COLUMN) if X.ndim == 1 else X
        if tuple(frame.columns) != self.sanitizer_.columns:
            raise UsageError(OTHER_COLUMNS)
        new, counts = sanitize_frame(self.sanitizer_, frame)
        return (new[ONE_COLUMN].rename(X.name) if X.ndim == 1 else new), counts

    def _array(self, X: Any) -> tuple[Any, DatasetCounts]:
        """A list or array of texts, or rows of them."""
        cells = np.asarray(X, dtype=object)
        names = self.sanitizer_.columns
        if cells.shape[1:] != (len(names),) and (cells.ndim, len(names)) != (1, 1):
            raise UsageError(OTHER_COLUMNS)
        columns = cells.reshape(len(cells), len(names))
        released, counts = self.sanitizer_.rows([list(column) for column in columns.T], 0)
        new = np.array(released, dtype=object).T
        return new.reshape(cells.shape), counts

    @property
    def seeded_(self) -> bool:
        """Whether anybody can draw the same again, so that it protects nobody."""
        return self.random_state is not None

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised of each word, with its limits."""
        check_is_fitted(self, "sanitizer_")
        return Report(self.sanitizer_, DatasetCounts()).guarantee

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.non_deterministic = self.random_state is None
        return tags


def _columns(X: Any) -> tuple[str, ...]:
    """The names of columns: those of a data frame, else made up."""
    if isinstance(X, str):
        raise UsageError("give a list of texts, not a single string")
    if getattr(X, "ndim", 1) == 2 and hasattr(X, "columns"):
        return tuple(X.columns)
    shape = X.shape if hasattr(X, "iloc") else np.asarray(X, dtype=object).shape
    if len(shape) == 1:
        return (ONE_COLUMN,)
    return tuple(f"{ONE_COLUMN}{number}" for number in range(shape[1]))
