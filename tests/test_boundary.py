"""The door: what leaves, in which order, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.engines.base import EngineError, Hit
from sottovoce.errors import UsageError
from sottovoce.search.boundary import LONGEST_QUERY, Boundary


class Listener:
    """An engine that remembers what it was asked."""

    name, remote, pause = "a listener", True, 0.0

    def __init__(self, most_queries=None, pause=0.0, answer=None):
        self.most_queries, self.pause = most_queries, pause
        self.answer = answer or (lambda query, depth: [Hit(query, 1.0)] * 3)
        self.heard = []

    def search(self, queries, depth):
        self.heard.append(list(queries))
        return [self.answer(query, depth) for query in queries]


def send(engine, queries, depth, progress=None, **options):
    boundary = Boundary(engine, **options)
    return boundary.send(boundary.check(queries), depth, progress)


def test_each_query_is_sent_once_and_answers_come_back_to_it():
    engine = Listener()
    answers = send(engine, ["one", "two", "one", "  two ", "", "three\n"], 2)
    assert sorted(engine.heard[0]) == ["one", "three", "two"]
    assert list(answers.sent) == list(answers.hits) == engine.heard[0]
    assert answers.hits["two"] == [Hit("two", 1.0)] * 2
    assert answers.failure is None


def test_the_order_is_random():
    queries = [f"q{i}" for i in range(8)]
    orders = set()
    for _ in range(20):
        engine = Listener()
        send(engine, queries, 1)
        orders.add(tuple(engine.heard[0]))
    assert len(orders) > 10


def test_queries_are_spaced_as_the_engine_asks_with_pauses_that_vary():
    engine, pauses, seen = Listener(pause=2.0), [], []
    answers = send(
        engine,
        ["a", "b", "c", "d"],
        1,
        lambda done, total: seen.append((done, total)),
        rng=np.random.default_rng(1),
        sleep=pauses.append,
    )
    assert [len(batch) for batch in engine.heard] == [1, 1, 1, 1]
    assert len(pauses) == 3
    assert all(2.0 <= pause <= 3.5 for pause in pauses)
    assert len(set(pauses)) == 3
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [query for (query,) in engine.heard] == list(answers.sent) == list(answers.hits)
    assert answers.failure is None


def test_more_queries_than_the_engine_takes_are_refused_before_the_first_leaves():
    engine = Listener(most_queries=2)
    with pytest.raises(UsageError, match="takes 2 queries for a search, these are 3"):
        send(engine, ["a", "b", "c"], 1)
    assert not engine.heard


def test_what_is_exactly_at_a_limit_passes():
    engine = Listener(most_queries=2)
    send(engine, ["a", "x" * LONGEST_QUERY], 1)
    assert sorted(map(len, engine.heard[0])) == [1, LONGEST_QUERY]


def test_reprs_hold_no_query():
    engine = Listener()
    boundary = Boundary(engine)
    outgoing = boundary.check(["secretword", "another"])
    assert repr(outgoing) == "Outgoing(2 queries)"
    assert repr(boundary.send(outgoing, 1)) == "Answers(2 of 2)"
    with pytest.raises(AttributeError):
        outgoing.queries = ("unchecked",)


def test_a_failure_at_the_first_of_spaced_queries_is_raised():
    def fail(query, depth):
        raise EngineError("it is down")

    engine = Listener(pause=0.5, answer=fail)
    with pytest.raises(EngineError, match="it is down"):
        send(engine, ["a", "b"], 1, sleep=lambda seconds: None)
    assert len(engine.heard) == 1


def test_invisible_and_control_characters_do_not_leave():
    engine = Listener()
    send(engine, ["a\u200bb\x00c\x1b[31m\r\nd\ud800"], 1)
    assert engine.heard == [["ab c [31m d"]]


def test_endless_queries_are_refused():
    engine = Listener()
    with pytest.raises(UsageError, match="characters"):
        send(engine, ["ok", "x" * (LONGEST_QUERY + 1)], 1)
    assert not engine.heard


def test_nothing_to_send_is_no_request():
    engine = Listener()
    assert send(engine, ["", "  "], 5).sent == ()
    assert not engine.heard


def test_a_failing_engine_is_named_without_its_message():
    def fail(query, depth):
        raise RuntimeError(f"cannot find {query}")

    with pytest.raises(EngineError, match=r"a listener failed \(RuntimeError\)") as caught:
        send(Listener(answer=fail), ["secretword"], 1)
    assert "secretword" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_engine_that_forgets_queries_is_noticed():
    engine = Listener()
    engine.search = lambda queries, depth: []
    with pytest.raises(EngineError, match="answered 0 of 1"):
        send(engine, ["a"], 1)


def test_answers_given_before_a_failure_are_kept_and_nothing_more_is_sent():
    def fail_third(query, depth):
        if len(engine.heard) == 3:
            raise RuntimeError(query)
        return [Hit(query, 1.0)]

    engine = Listener(pause=0.1, answer=fail_third)
    answers = send(engine, list("abcdef"), 5, sleep=lambda seconds: None)
    assert len(engine.heard) == 3
    assert [query for (query,) in engine.heard] == list(answers.sent)
    assert list(answers.hits) == list(answers.sent[:2])
    assert "RuntimeError" in str(answers.failure)


def test_nothing_leaves_that_was_not_checked():
    engine = Listener()
    with pytest.raises(AttributeError):
        Boundary(engine).send(["unchecked"], 1)
    assert not engine.heard
