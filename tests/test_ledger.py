"""The ledger: what it counts, what it refuses, what it remembers, and what it never writes."""

from __future__ import annotations

import math
import re
import sqlite3
import stat
import threading
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sottovoce
from sottovoce.cli.ledger import DEFAULT_NEAREST, DEFAULT_RANDOM
from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import (
    Budget,
    BudgetError,
    Entry,
    Ledger,
    NoLedgerError,
    Promise,
    Spent,
    in_words,
)
from sottovoce.mechanisms.base import Rewriting, TextMechanism
from sottovoce.text import TextPipeline, folded_text

TEXT = "Treatment for melanoma"
EUCLIDEAN = Guarantee("metric", 5.0, "euclidean")
UNBOUNDED = Guarantee("none", None)


def entry(text=TEXT, guarantee=EUCLIDEAN, releases=2, **more):
    fields = {
        "variants": ("winter cream", "gift paw"),
        "mechanism": "cmp:epsilon=5",
        "release": "independent",
        "destination": "bm25",
        "space": "toy",
        "space_sha256": "ab12",
    }
    return Entry(text=text, guarantee=guarantee, releases=releases, **{**fields, **more})


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger")


def totals(ledger, text=None):
    return {(each.notion, each.metric): each.nats for each in ledger.spent(text)}


# What is written


def test_a_record_holds_what_was_released_and_what_it_cost(ledger):
    receipt = ledger.charge(entry(protected=3, in_clear=1, unknown=2))
    (record,) = ledger.entries()
    assert receipt.record == record
    assert (record.number, record.repeats) == (1, None)
    assert (record.mechanism, record.release, record.destination) == (
        "cmp:epsilon=5",
        "independent",
        "bm25",
    )
    assert (record.space, record.space_sha256) == ("toy", "ab12")
    assert (record.notion, record.metric, record.epsilon) == ("metric", "euclidean", 5.0)
    assert (record.releases, record.variants, record.spent) == (2, 2, 10.0)
    assert (record.protected, record.in_clear, record.unknown) == (3, 1, 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", record.time)


def test_neither_the_text_nor_its_variants_are_written(ledger):
    ledger.charge(entry(words=("3f3f3f3f3f",)))
    written = b"".join(file.read_bytes() for file in ledger.folder.iterdir()).lower()
    assert b"3f3f3f3f3f" in written
    assert b"melanoma" not in written
    assert b"winter" not in written


def test_two_ledgers_hash_the_same_text_differently(tmp_path):
    hashes = [Ledger.open(tmp_path / name).charge(entry()).record.text for name in "ab"]
    assert hashes[0] != hashes[1]


def test_reprs_hold_no_text(ledger):
    receipt = ledger.charge(entry(words=("a1",)))
    for each in (entry(), receipt, receipt.record, ledger, *ledger.spent()):
        assert "melanoma" not in repr(each).lower()
    assert "winter" not in repr(entry()) + repr(receipt)


def test_folder_and_files_are_the_users_alone(ledger):
    reader = sqlite3.connect(ledger.folder / "ledger.db")  # keeps the -wal and -shm files alive
    reader.execute("SELECT count(*) FROM records").fetchone()
    ledger.charge(entry())
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in ledger.folder.iterdir()}
    reader.close()
    assert set(modes) == {"ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.key"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700


def test_the_ledger_lies_in_the_data_folder_and_is_made_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    with pytest.raises(NoLedgerError):
        Ledger.open(create=False)
    assert not (tmp_path / "home").exists()
    assert Ledger.open().folder == tmp_path / "home" / "ledger"
    assert [each.name for each in (tmp_path / "home").iterdir()] == ["ledger"]
    assert Ledger.open(create=False).entries() == []
    with pytest.raises(UsageError, match="negative"):
        Ledger.open(create=False).entries(-1)


# What adds up


def test_epsilons_add_up_over_releases_of_the_same_promise(ledger):
    ledger.charge(entry(releases=2))
    ledger.charge(entry("another text", releases=3))
    ledger.charge(entry(releases=1, guarantee=replace(EUCLIDEAN, epsilon=0.5)))
    (total,) = ledger.spent()
    assert (total.nats, total.releases, total.records) == (25.5, 6, 3)
    (of_text,) = ledger.spent(TEXT)
    assert (of_text.nats, of_text.releases, of_text.records) == (10.5, 3, 2)
    assert ledger.spent("never released") == []


def test_different_promises_are_never_summed(ledger):
    ledger.charge(entry())
    ledger.charge(entry(guarantee=Guarantee("metric", 1.0, "mahalanobis(lambda=0.2)")))
    ledger.charge(entry(guarantee=Guarantee("local", 2.0)))
    ledger.charge(entry(guarantee=Guarantee("group", 3.0)))
    ledger.charge(entry(guarantee=UNBOUNDED))
    ledger.charge(entry(space="other", space_sha256="cd34"))
    assert [(each.notion, each.metric, each.space, each.nats) for each in ledger.spent()] == [
        ("metric", "euclidean", "toy", 10.0),
        ("metric", "mahalanobis(lambda=0.2)", "toy", 2.0),
        ("local", None, "toy", 4.0),
        ("group", None, "toy", 6.0),
        ("none", None, "toy", None),
        ("metric", "euclidean", "other", 10.0),
    ]


def test_a_promise_without_a_metric_adds_up_over_spaces(ledger):
    for space in ("ab12", "cd34"):
        ledger.charge(entry(guarantee=Guarantee("local", 2.0), space_sha256=space))
    assert totals(ledger) == {("local", None): 8.0}


def test_releases_without_a_bound_and_words_in_clear_are_reported(ledger):
    ledger.charge(entry(guarantee=UNBOUNDED, in_clear=2))
    ledger.charge(entry(guarantee=UNBOUNDED, in_clear=1))
    ledger.charge(entry(guarantee=UNBOUNDED, releases=0))
    (spent,) = ledger.spent()
    assert (spent.nats, spent.unbounded, spent.in_clear) == (None, 2, 3)


def test_whole_numbers_are_counted_like_others(ledger):
    ledger.set_budget(per_text=20, total=30)
    ledger.charge(entry(guarantee=Guarantee("local", 5)))
    assert ledger.check() == 1
    assert ledger.charge(entry(guarantee=Guarantee("local", 5))).left_in_total == 10.0


def test_a_release_that_protects_no_word_costs_nothing(ledger):
    ledger.charge(entry(releases=0))
    ledger.charge(entry(guarantee=UNBOUNDED, releases=0))
    assert totals(ledger) == {("metric", "euclidean"): 0.0, ("none", None): 0.0}


# Which texts are the same


@pytest.mark.parametrize(
    "same",
    ["treatment FOR melanoma", "  Treatment\tfor\n melanoma ", "Treatment for mela\u200bnoma"],
)
def test_case_blanks_and_what_nobody_sees_make_no_other_text(ledger, same):
    ledger.charge(entry())
    assert totals(ledger, same) == {("metric", "euclidean"): 10.0}


def test_other_words_make_another_text(ledger):
    ledger.charge(entry())
    for other in ("Treatment for melanomas", "Treatmentfor melanoma", "melanoma for treatment", ""):
        assert ledger.spent(other) == []


@given(st.text())
@example("\u03b1\u0345\u0301")  # marks whose order decides what casefolding makes of them
def test_normal_forms_make_no_other_text(text):
    for form in ("NFC", "NFD"):
        assert folded_text(unicodedata.normalize(form, text)) == folded_text(text)
    assert folded_text(f" {text}\n") == folded_text(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_upper_case_makes_no_other_text(text):
    assert folded_text(text.upper()) == folded_text(text)


# Budgets


def test_without_a_budget_nothing_is_refused(ledger):
    assert ledger.budget() == Budget(None, None)
    receipt = ledger.charge(entry(releases=10**6))
    assert (receipt.left_for_text, receipt.left_in_total) == (None, None)
    assert ledger.remaining(TEXT, entry().promise) == math.inf


def test_a_budget_for_each_text_refuses_what_would_exceed_it(ledger):
    ledger.set_budget(per_text=15, total=None)
    assert ledger.charge(entry()).left_for_text == 5.0
    with pytest.raises(BudgetError, match=r"cost 10 .* 15 for each text 10 are spent and 5") as it:
        ledger.charge(entry("TREATMENT for melanoma"))
    assert (it.value.cost, it.value.spent, it.value.left) == (10.0, 10.0, 5.0)
    assert "melanoma" not in str(it.value).lower()
    assert totals(ledger) == {("metric", "euclidean"): 10.0}
    ledger.charge(entry(releases=1))
    ledger.charge(entry("another text"))


def test_a_total_budget_holds_over_all_texts(ledger):
    ledger.set_budget(per_text=None, total=25)
    ledger.charge(entry("one"))
    assert ledger.charge(entry("two")).left_in_total == 5.0
    with pytest.raises(BudgetError, match="25 in total 20 are spent and 5 are left"):
        ledger.charge(entry("three"))
    assert ledger.remaining("three", entry().promise) == 5.0


def test_what_is_left_is_said_of_the_budget_that_is_meant(ledger):
    ledger.set_budget(50.0, 500.0)
    ledger.charge(entry())
    ledger.charge(entry("another text"))
    assert [total.left for total in ledger.spent()] == [480.0]
    assert [total.left for total in ledger.spent(TEXT)] == [40.0]


def test_a_budget_holds_for_each_promise_separately(ledger):
    ledger.set_budget(per_text=10, total=10)
    ledger.charge(entry())
    ledger.charge(entry(guarantee=Guarantee("local", 5.0)))
    ledger.charge(entry(space_sha256="cd34"))
    assert ledger.remaining(TEXT, entry().promise) == 0.0
    assert ledger.remaining(TEXT, Promise("group")) == 10.0


def test_a_budget_refuses_what_nothing_bounds(ledger):
    ledger.charge(entry(guarantee=UNBOUNDED))
    ledger.set_budget(per_text=None, total=1e9)
    with pytest.raises(BudgetError, match="ledger budget --none"):
        ledger.charge(entry(guarantee=UNBOUNDED))
    ledger.charge(entry(guarantee=UNBOUNDED, releases=0))
    ledger.charge(entry())


@given(
    in_clear=st.integers(0, 3),
    releases=st.integers(0, 2),
    per_text=st.none() | st.just(0.0) | st.just(1e9),
    total=st.none() | st.just(1e9),
)
def test_any_budget_refuses_words_in_clear(tmp_path_factory, in_clear, releases, per_text, total):
    ledger = Ledger.open(tmp_path_factory.mktemp("clear") / "ledger")
    ledger.set_budget(per_text, total)
    made = entry(in_clear=in_clear, releases=releases)
    covered = not in_clear and (per_text != 0 or not releases)
    if (per_text, total) == (None, None) or covered:
        assert ledger.charge(made).record.in_clear == in_clear
        return
    with pytest.raises(BudgetError, match="in clear" if in_clear else "are left"):
        ledger.charge(made)
    assert ledger.entries() == []


def test_what_is_in_clear_is_refused_with_what_to_do(ledger):
    ledger.set_budget(per_text=None, total=1e9)
    with pytest.raises(BudgetError, match=r"2 words .* --keep .* ledger budget --none"):
        ledger.charge(entry(in_clear=2))
    ledger.set_budget(None, None)
    assert ledger.charge(entry(in_clear=2)).record.in_clear == 2


def test_a_lowered_budget_refuses_at_once_and_shows_nothing_left(ledger):
    ledger.charge(entry())
    ledger.set_budget(per_text=3, total=0)
    with pytest.raises(BudgetError):
        ledger.charge(entry("new", releases=1))
    assert ledger.spent()[0].left == 0.0
    assert ledger.spent(TEXT)[0].left == 0.0


def test_rounding_does_not_cut_a_budget(ledger):
    ledger.set_budget(per_text=0.3, total=None)
    tenth = replace(EUCLIDEAN, epsilon=0.1)
    for _ in range(3):
        ledger.charge(entry(guarantee=tenth, releases=1))
    with pytest.raises(BudgetError):
        ledger.charge(entry(guarantee=replace(EUCLIDEAN, epsilon=1e-6), releases=1))


@pytest.mark.parametrize("limit", [-1, math.nan, math.inf])
def test_a_budget_is_a_number_of_nats(ledger, limit):
    with pytest.raises(UsageError, match="--none"):
        ledger.set_budget(per_text=limit, total=None)
    assert ledger.budget() == Budget()


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([None, 1.5, 4.0]), st.integers(0, 3)),
        max_size=8,
    ),
    st.none() | st.floats(0, 20),
    st.none() | st.floats(0, 30),
)
@settings(max_examples=20)
def test_any_run_of_charges_ends_within_budget_and_adds_up(tmp_path_factory, run, per_text, total):
    """Against a model that adds up in a dictionary."""
    ledger = Ledger.open(tmp_path_factory.mktemp("run") / "ledger")
    ledger.set_budget(per_text, total)
    of_text, of_all, counted = dict.fromkeys("abc", 0.0), 0.0, 0
    for text, epsilon, releases in run:
        guarantee = UNBOUNDED if epsilon is None else replace(EUCLIDEAN, epsilon=epsilon)
        cost = 0.0 if not releases else math.inf if epsilon is None else epsilon * releases
        fits = not cost or (
            of_text[text] + cost <= (math.inf if per_text is None else per_text + 1e-9)
            and of_all + cost <= (math.inf if total is None else total + 1e-9)
        )
        if math.isinf(cost):
            fits = per_text is None and total is None
        try:
            ledger.charge(entry(text, guarantee, releases))
            assert fits
            counted += 1
            if epsilon is not None:
                of_text[text] += cost
                of_all += cost
        except BudgetError:
            assert not fits
    assert totals(ledger).get(("metric", "euclidean"), 0.0) == of_all
    for text, spent in of_text.items():
        assert totals(ledger, text).get(("metric", "euclidean"), 0.0) == spent
    assert ledger.check() == counted


# Remembered words


def test_words_that_were_released_before_cost_nothing(ledger):
    first = ledger.charge(entry(words=("a1", "b2")))
    assert not first.recalled
    for words in (("a1", "b2"), ("b2",)):
        again = ledger.charge(entry("another text", destination="elsewhere", words=words))
        assert again.recalled
        record = ledger.entries()[0]
        assert (record.repeats, record.releases, record.spent) == (1, 0, 0.0)
        assert (record.destination, record.variants) == ("elsewhere", 2)
    assert totals(ledger) == {("metric", "euclidean"): 10.0}
    assert ledger.spent()[0].records == 3


def test_one_new_word_costs_what_all_would(ledger):
    ledger.charge(entry(words=("a1", "b2")))
    assert not ledger.charge(entry(words=("a1", "c3"))).recalled
    assert totals(ledger) == {("metric", "euclidean"): 20.0}
    assert ledger.charge(entry(words=("b2", "c3"))).record.repeats == 2
    assert totals(ledger) == {("metric", "euclidean"): 20.0}
    assert ledger.check() == 3


def test_words_drawn_afresh_are_charged_each_time(ledger):
    ledger.charge(entry(words=("a1",)))
    for spent in (20.0, 30.0):
        assert not ledger.charge(entry()).recalled
        assert totals(ledger) == {("metric", "euclidean"): spent}


@given(st.lists(st.frozensets(st.sampled_from(["a", "b", "c", "d"]), max_size=3), max_size=12))
@settings(max_examples=20)
def test_any_run_of_texts_is_charged_for_new_words_alone(tmp_path_factory, run):
    ledger = Ledger.open(tmp_path_factory.mktemp("words") / "ledger")
    released, spent = set(), 0.0
    for words in run:
        receipt = ledger.charge(entry(" ".join(words), words=tuple(sorted(words))))
        new = not words or not words <= released
        assert receipt.recalled == (not new)
        spent += 10.0 * new
        released |= words
        assert receipt.record.total == spent


def test_words_in_clear_are_counted_each_time(ledger):
    """Memory is by word: other words may stand in clear beside those that are remembered."""
    for _ in range(2):
        ledger.charge(entry(in_clear=2, words=("a1",)))
    assert ledger.spent()[0].in_clear == 4


def test_what_is_remembered_is_sent_even_when_the_budget_is_spent(ledger):
    ledger.set_budget(per_text=10, total=10)
    ledger.charge(entry(words=("a1",)))
    assert ledger.charge(entry(words=("a1",))).recalled
    for words in (("c3",), ("a1", "c3"), ()):
        with pytest.raises(BudgetError):
            ledger.charge(entry(words=words))


def test_a_ledger_has_a_key_of_its_own_by_which_words_are_drawn(tmp_path):
    one, other = (Ledger.open(tmp_path / name) for name in "ab")
    assert one.memory_key() == one.memory_key() != other.memory_key()
    secret = (one.folder / "ledger.key").read_bytes()
    assert len(one.memory_key()) == 32
    assert one.memory_key() not in (secret, one.folder.joinpath("ledger.db").read_bytes())
    assert one.memory_key().hex() not in repr(one)


# From a result of an obfuscator


@pytest.mark.parametrize(("release", "spent"), [("independent", 15.0), ("once", 5.0)])
def test_an_entry_is_made_of_a_result(ledger, small_space, release, spent):
    cmp = sottovoce.mechanism("cmp", space=small_space, epsilon=5)
    pipeline = TextPipeline(keep=frozenset({"word3"}))
    obfuscator = sottovoce.Obfuscator(cmp, n=3, release=release, pipeline=pipeline)
    (result,) = obfuscator.obfuscate(["word1 word2 word1 word3 zzz zzz"])
    made = Entry.of(result, obfuscator, "bm25")
    assert (made.protected, made.in_clear, made.unknown) == (5, 1, 2)
    assert made.spent == result.spent == spent
    assert made.promise == ("metric", "euclidean", small_space.sha256)
    record = ledger.charge(made).record
    assert (record.space, record.space_sha256) == ("small", small_space.sha256)
    assert (record.release, record.mechanism) == (release, "cmp:epsilon=5")
    assert ledger.check() == 1


def test_unknown_words_cost_what_known_ones_cost_and_no_words_cost_nothing(small_space):
    obfuscator = sottovoce.Obfuscator(sottovoce.mechanism("cmp", space=small_space), n=3)
    unknown, nothing = (
        Entry.of(result, obfuscator, "bm25") for result in obfuscator.obfuscate(["zzz yyy", "?!"])
    )
    assert (unknown.releases, unknown.spent) == (3, 30.0)
    assert (unknown.protected, unknown.unknown) == (2, 2)
    assert (nothing.releases, nothing.spent, nothing.protected) == (0, 0.0, 0)


class Shuffled(TextMechanism):
    """Promises nothing, as rewriting a text as a whole may."""

    name = "shuffled"

    @property
    def guarantee(self):
        return UNBOUNDED

    def rewrite(self, text, n, pipeline, rng):
        words = text.split()
        return Rewriting((" ".join(words[::-1]),), unknown=("zzz",), kept=tuple(words))


def test_a_text_rewritten_as_a_whole_has_no_bound(ledger):
    obfuscator = sottovoce.Obfuscator(Shuffled(), n=5)
    (result,) = obfuscator.obfuscate(["one two"])
    made = Entry.of(result, obfuscator, "bm25")
    assert (made.releases, made.spent, made.in_clear, made.unknown) == (1, None, 2, 1)
    assert made.space is None
    ledger.charge(made)
    assert totals(ledger) == {("none", None): None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"releases": -1},
        {"protected": 1.5},
        {"in_clear": True},
        {"destination": "two\nlines"},
        {"destination": "\ud800"},
        {"guarantee": Guarantee("local", 1e308), "releases": 100},
    ],
)
def test_an_entry_that_cannot_be_counted_is_refused(wrong):
    with pytest.raises(UsageError):
        entry(**wrong)


# All at once


def test_threads_share_a_ledger(ledger):
    ledger.charge(entry("remembered", releases=0, words=("a1",)))

    def work():
        for _ in range(5):
            ledger.charge(entry(releases=1))
            assert ledger.charge(entry("remembered", words=("a1",))).recalled

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals(ledger) == {("metric", "euclidean"): 100.0}
    assert ledger.check() == 41


# In words


def spent(nats, notion="metric", in_clear=0):
    metric = "euclidean" if notion == "metric" else None
    return Spent(notion, metric, "toy", nats, 1, 1, 0, in_clear, None)


def test_nats_are_put_in_words():
    said = in_words(spent(0.5), nearest=4.8, random=9.0)
    assert said.startswith("At most 0.5 nats per unit of euclidean distance: 2 between a word and")
    assert "nearest neighbour (odds change by a factor of 11 at most)" in said
    assert "random word (odds change by a factor of 90 at most)" in said
    assert "10^104" in in_words(spent(50), nearest=4.8)
    assert in_words(spent(50)) == "At most 50 nats per unit of euclidean distance."
    assert "factor of 2.7 at most" in in_words(spent(1, "local"))
    assert "inside its group" in in_words(spent(1, "group"))
    assert in_words(spent(None, "none")).startswith("Nothing bounds")
    assert "1 word was sent in clear" in in_words(spent(1, in_clear=1))
    assert "2 words were sent in clear" in in_words(spent(1, in_clear=2))


def test_the_typical_distances_are_those_of_the_default_space(default_space):
    rng = np.random.default_rng(1)
    one, other = rng.integers(default_space.size, size=(2, 2000))
    vectors = default_space.vectors
    apart = np.linalg.norm(vectors[one] - vectors[other], axis=1)
    assert np.median(apart) == pytest.approx(DEFAULT_RANDOM, abs=0.15)
    _, near = default_space.nearest_output.top(vectors[one[:300]], k=2)
    assert np.median(near[:, 1]) == pytest.approx(DEFAULT_NEAREST, abs=0.15)
