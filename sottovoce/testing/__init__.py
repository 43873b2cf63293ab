"""For authors of mechanisms: the contract that every registered mechanism keeps.

    from sottovoce.testing import check_mechanism
    check_mechanism(MyMechanism(space=toy_space(), epsilon=2.0))

``CHECKS`` are for mechanisms that work word by word, ``TEXT_CHECKS`` for those that rewrite a
text, ``POOL_CHECKS`` for those that replace it by a string of a pool, ``SET_CHECKS`` for those that
hide it in a set of strings. Each check is also a function of its own; a broken promise raises
``AssertionError`` with the promise as its message.
"""

from __future__ import annotations

from sottovoce.mechanisms.base import (
    Mechanism,
    PoolMechanism,
    SetMechanism,
    TextMechanism,
    WordMechanism,
)
from sottovoce.testing.pool_checks import (
    POOL_CHECKS,
    SET_CHECKS,
    check_pool_closure,
    check_pool_epsilon,
    check_pool_once,
    check_pool_texts_are_independent,
    check_pool_variants_are_independent,
    check_set_closure,
    check_set_is_sticky,
    check_set_law,
    check_set_texts_are_independent,
)
from sottovoce.testing.promises import (
    SECRET,
    check_guarantee,
    promise,
    toy_space,
)
from sottovoce.testing.text_checks import (
    TEXT_CHECKS,
    check_text_generator,
    check_text_pickle,
    check_text_seeds,
    check_text_silence,
    check_text_variants,
)
from sottovoce.testing.word_checks import (
    CHECKS,
    check_batching,
    check_epsilon_matters,
    check_global_generator_untouched,
    check_law,
    check_never_in_clear,
    check_once,
    check_own_protection,
    check_pickle,
    check_rows_are_independent,
    check_seeds,
    check_shape_and_closure,
    check_silence,
)

__all__ = [
    "CHECKS",
    "POOL_CHECKS",
    "SECRET",
    "SET_CHECKS",
    "TEXT_CHECKS",
    "check_batching",
    "check_epsilon_matters",
    "check_global_generator_untouched",
    "check_guarantee",
    "check_law",
    "check_mechanism",
    "check_never_in_clear",
    "check_once",
    "check_own_protection",
    "check_pickle",
    "check_pool_closure",
    "check_pool_epsilon",
    "check_pool_once",
    "check_pool_texts_are_independent",
    "check_pool_variants_are_independent",
    "check_rows_are_independent",
    "check_seeds",
    "check_set_closure",
    "check_set_is_sticky",
    "check_set_law",
    "check_set_texts_are_independent",
    "check_shape_and_closure",
    "check_silence",
    "check_text_generator",
    "check_text_pickle",
    "check_text_seeds",
    "check_text_silence",
    "check_text_variants",
    "promise",
    "toy_space",
]


def check_mechanism(mechanism: Mechanism) -> None:
    """Run every check."""
    if isinstance(mechanism, TextMechanism):
        for text_check in TEXT_CHECKS:
            text_check(mechanism)
    if isinstance(mechanism, WordMechanism):
        for check in CHECKS:
            check(mechanism)
    if isinstance(mechanism, PoolMechanism):
        for pool_check in POOL_CHECKS:
            pool_check(mechanism)
    if isinstance(mechanism, SetMechanism):
        for set_check in SET_CHECKS:
            set_check(mechanism)
    promise(
        isinstance(mechanism, TextMechanism | WordMechanism | PoolMechanism | SetMechanism),
        "a mechanism works word by word or on a whole text",
    )
