"""The sanitizer: the same for every cut, counts that add up, lists that hold, honest linking."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce import mechanism
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import Rewriting, TextMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import DatasetCounts, Report, Sanitizer
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import SpaceWriter
from sottovoce.text import TextPipeline

pa = pytest.importorskip("pyarrow")

SECRET = bytes(range(32))
TEXTS = ["word1 Word2, WORD1!", "", None, "word7's zzz", "zzz-word9 word1", "..."] * 7


def sanitizer(space, spec="cmp:epsilon=3", columns=("text",), rng=1, **options):
    pipeline = options.pop("pipeline", TextPipeline(restore_case=True))
    return Sanitizer(
        Obfuscator(mechanism(spec, space=space), pipeline=pipeline, rng=rng), columns, **options
    )


@pytest.mark.parametrize("spec", ["cmp:epsilon=3", "vickrey-mahalanobis:epsilon=3", "santext"])
@pytest.mark.parametrize("secret", [None, SECRET])
def test_no_cut_of_the_rows_changes_a_seeded_result(small_space, spec, secret):
    subject = sanitizer(small_space, spec, linkable=secret)
    whole, counts = subject.texts("text", TEXTS, 0)

    @given(st.lists(st.integers(0, len(TEXTS)), max_size=6))
    def for_every_cut(places):
        edges = [0, *sorted(places), len(TEXTS)]
        parts, total = [], DatasetCounts()
        for start, end in pairwise(edges):
            texts, own = subject.texts("text", TEXTS[start:end], start)
            parts += texts
            total += own
        assert parts == whole
        assert total == counts

    for_every_cut()


def test_many_rows_are_as_few(small_space):
    """More than are cut together."""
    subject = sanitizer(small_space)
    many = [f"word{i} word{i + 1}" for i in range(1500)]
    whole, _ = subject.texts("text", many, 0)
    assert whole[1020:1030] == subject.texts("text", many[1020:1030], 1020)[0]


def test_another_seed_row_or_column_draws_anew(small_space):
    text = [" ".join(f"word{i}" for i in range(50))]
    subject = sanitizer(small_space)
    (first,), _ = subject.texts("text", text, 0)
    for other in (
        subject.texts("text", text, 1),
        subject.texts("title", text, 0),
        sanitizer(small_space, rng=2).texts("text", text, 0),
    ):
        assert other[0] != [first]


def test_secure_draws_never_repeat(small_space):
    text = [" ".join(f"word{i}" for i in range(50))]
    subject = sanitizer(small_space, rng=None)
    assert subject.texts("text", text, 0)[0] != subject.texts("text", text, 0)[0]


def test_what_stands_between_words_stays_and_nothing_stays_nothing(small_space):
    released, _ = sanitizer(small_space).texts("text", TEXTS[:6], 0)
    assert released[1:3] == ["", None]
    assert released[5] == "..."
    first, second, third = released[0].rstrip("!").replace(",", "").split()
    assert released[0] == f"{first} {second}, {third}!"
    assert (first.islower(), second.istitle(), third.isupper()) == (True, True, True)


@given(
    st.lists(
        st.lists(st.sampled_from(["word1", "word5", "the", "zzz", "qqq", "Keep"])), max_size=5
    ),
    st.sampled_from(["uniform", "drop"]),
    st.sampled_from(["all", "content"]),
)
def test_counts_say_what_became_of_each_word(small_space, rows, unknown, protect):
    pipeline = TextPipeline(unknown=unknown, protect=protect, keep=frozenset({"keep"}))
    subject = sanitizer(small_space, pipeline=pipeline, deny=frozenset({"word5"}))
    _, counts = subject.texts("text", [" ".join(row) for row in rows], 0)
    said = Counter(word for row in rows for word in row)
    assert counts.texts == len(rows)
    assert counts.empty == sum(not row for row in rows)
    assert counts.words == said.total()
    assert counts.words == counts.changed + counts.returned + counts.dropped + counts.kept
    assert counts.denied == said["word5"]
    assert counts.kept_listed == said["Keep"]
    lost = counts.uniform if unknown == "uniform" else counts.dropped
    assert lost == said["zzz"] + said["qqq"] + said["the"] - counts.kept_unprotected
    assert counts.returned <= said["word1"]


def test_words_that_come_back_are_counted(small_space):
    _, counts = sanitizer(small_space, "cmp:epsilon=100000").texts("text", ["word1 WORD2 zzz"], 0)
    assert (counts.words, counts.returned, counts.changed, counts.uniform) == (3, 2, 1, 1)


# Deny


@pytest.mark.parametrize("text", ["Word5", "word5's", "WORD5!", "word1-word5", "word5/word5"])
@pytest.mark.parametrize("unknown", ["uniform", "drop"])
def test_a_denied_word_is_always_replaced(small_space, text, unknown):
    """At an epsilon at which any other word stays."""
    subject = sanitizer(
        small_space,
        "cmp:epsilon=100000",
        pipeline=TextPipeline(unknown=unknown),
        deny=frozenset({"WORD5"}),
    )
    released, counts = subject.texts("text", [text] * 50, 0)
    assert counts.denied == 50 * text.casefold().count("word5")
    assert not any("word5" in each.replace("-", " ").replace("/", " ").split() for each in released)
    if "word1" in text:
        assert all("word1" in each for each in released)
    words = {each.strip("!") for each in released}
    assert len(words) > 25, "not drawn uniformly"


def test_a_denied_word_is_never_released(toy):
    subject = sanitizer(toy, "cmp:epsilon=0.01", deny=frozenset({"b"}))
    released, _ = subject.texts("text", ["a b c e f zzz"] * 200, 0)
    assert set(" ".join(released).split()) == {"a", "c", "e", "f"}


def test_a_denied_word_is_not_left_in_clear_for_want_of_protection():
    space = WordSpace.from_arrays(["the", "a", "dog", "cat"], np.eye(4))
    pipeline = TextPipeline(protect="content")
    free = sanitizer(space, "cmp:epsilon=100000", pipeline=pipeline)
    assert free.texts("text", ["the dog"], 0)[0] == ["the dog"]
    denying = replace(free, deny=frozenset({"the"}))
    released, counts = denying.texts("text", ["the dog", "a dog"], 0)
    assert "the" not in released[0].split()
    assert released[1] == "a dog"
    assert counts.denied == 1


def test_lists_that_contradict_or_leave_nothing_are_refused(toy):
    keep = TextPipeline(keep=frozenset({"a's"}))
    with pytest.raises(UsageError, match="both kept in clear and denied"):
        sanitizer(toy, pipeline=keep, deny=frozenset({"a"}))
    with pytest.raises(UsageError, match="nothing could"):
        sanitizer(toy, deny=frozenset("abcef"))
    with pytest.raises(UsageError, match="one by one"):
        sanitizer(toy, deny=frozenset({"two words"}))
    with pytest.raises(UsageError, match="collection"):
        sanitizer(toy, deny="abc")


# Linkable


def test_linkable_words_are_the_same_everywhere(small_space):
    subject = sanitizer(small_space, columns=("a", "b"), linkable=SECRET, rng=None)
    text = "word3 Word3 zzz word4 ZZZ word3"
    (one, two), _ = subject.texts("a", [text, text], 5)
    (three,), _ = subject.texts("b", [text], 900)
    assert one == two == three
    words = one.casefold().split()
    assert words[0] == words[1] == words[5]
    assert words[2] == words[4]
    assert len({words[0], words[2], words[3]}) == 3
    other = replace(subject, linkable=bytes(32))
    assert other.texts("a", [text], 5)[0] != [one]


def test_unlinkable_words_are_not(small_space):
    (one,), _ = sanitizer(small_space).texts("text", ["word3 " * 100], 0)
    assert len(set(one.split())) > 20


@pytest.mark.parametrize("spec", ["cmp:epsilon=2", "santext:epsilon=2", "mahalanobis:epsilon=2"])
def test_over_all_secrets_linkable_words_follow_the_law_of_the_mechanism(toy, spec):
    subject = sanitizer(toy, spec, linkable=SECRET)
    n = 600
    secrets = [number.to_bytes(16, "little") for number in range(n)]
    drawn = Counter(
        replace(subject, linkable=each).texts("text", ["b"], 0)[0][0] for each in secrets
    )
    law = mechanism(spec, space=toy)
    many = 50_000
    rng = np.random.default_rng(1)
    expected = np.bincount(law.sample(np.array([1]), many, rng)[:, 0], minlength=5) / many
    for word, share in zip(toy.words(range(5)), expected, strict=True):
        assert abs(drawn[word] / n - share) < 5 * np.sqrt(share / n) + 0.002


def test_linkable_unknown_words_are_uniform(toy):
    subject = sanitizer(toy, linkable=SECRET)
    (released,), _ = subject.texts("text", [" ".join(f"zz{i}q" for i in range(3000))], 0)
    counted = Counter(released.split())
    assert all(abs(counted[word] - 600) < 120 for word in "abcef")


def test_linkable_states_that_it_is_weaker(small_space):
    strong = Report(sanitizer(small_space, rng=None), DatasetCounts())
    weak = Report(sanitizer(small_space, rng=None, linkable=SECRET), DatasetCounts())
    said = " ".join(weak.guarantee.caveats)
    assert "counting" in said
    assert "key" in said
    assert weak.guarantee.scope != strong.guarantee.scope
    assert "counting" not in " ".join(strong.guarantee.caveats)
    assert (weak.to_dict()["linkable"], strong.to_dict()["linkable"]) == (True, False)


def test_short_secrets_are_refused(toy):
    with pytest.raises(UsageError, match="16 random bytes"):
        sanitizer(toy, linkable=b"secret")


# Arrow


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_a_batch_keeps_its_schema_and_other_columns(small_space, kind):
    schema = pa.schema(
        [
            pa.field("id", pa.int16(), nullable=False, metadata={"unit": "one"}),
            pa.field("text", kind),
            pa.field("tags", pa.list_(pa.string())),
        ],
        metadata={"pandas": "{}"},
    )
    texts = ["word1 word2", None, ""]
    cells = pa.array(texts)
    cells = cells.dictionary_encode() if pa.types.is_dictionary(kind) else cells.cast(kind)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2, 3], pa.int16()), cells, pa.array([["word1"], None, []])], schema=schema
    )
    subject = sanitizer(small_space, "cmp:epsilon=0.1")
    out, counts = subject.batch(batch, 10)
    assert out.schema.equals(schema, check_metadata=True)
    out.validate(full=True)
    assert out.column("id").equals(batch.column("id"))
    assert out.column("tags").equals(batch.column("tags"))
    assert out.column("text").to_pylist() == subject.texts("text", texts, 10)[0]
    assert out.column("text").to_pylist() != texts
    assert (counts.rows, counts.texts, counts.words, counts.empty) == (3, 3, 2, 2)


def test_several_columns_of_a_batch(small_space):
    batch = pa.RecordBatch.from_pydict({"a": ["word1 word2"], "b": ["word3"], "c": ["word4"]})
    one, counts = sanitizer(small_space, columns=("b", "a")).batch(batch, 3)
    other, _ = sanitizer(small_space, columns=("a", "b")).batch(batch, 3)
    assert one.equals(other)
    assert one.column("c").to_pylist() == ["word4"]
    assert (counts.rows, counts.texts, counts.words) == (1, 2, 3)


def test_columns_that_are_missing_doubled_or_no_text_are_refused(small_space):
    subject = sanitizer(small_space)
    with pytest.raises(UsageError, match="no column"):
        subject.batch(pa.RecordBatch.from_pydict({"other": ["word1"]}), 0)
    twice = pa.RecordBatch.from_arrays([pa.array(["word1"])] * 2, names=["text", "text"])
    with pytest.raises(UsageError, match="more than one"):
        subject.batch(twice, 0)
    with pytest.raises(UsageError, match="holds no text"):
        subject.batch(pa.RecordBatch.from_pydict({"text": [1]}), 0)
    narrow = pa.array([f"word{i}" for i in range(120)]).dictionary_encode()
    narrow = narrow.cast(pa.dictionary(pa.int8(), pa.string()))
    crowded = pa.RecordBatch.from_arrays([pa.concat_arrays([narrow, narrow])], names=["text"])
    with pytest.raises(UsageError, match="categories"):
        sanitizer(small_space, "cmp:epsilon=0.1").batch(crowded, 0)


# What leaves, and what does not


def test_it_adds_little_to_what_an_obfuscator_pickles_as(tmp_path):
    with SpaceWriter(tmp_path / "space", name="mine", dimension=3) as writer:
        writer.append([f"w{i}" for i in range(5000)], np.random.default_rng(1).random((5000, 3)))
        writer.commit()
    subject = sanitizer(WordSpace.open(tmp_path / "space"), deny=frozenset({"w7"}), linkable=SECRET)
    before = subject.texts("text", ["w1 w7"], 0)
    content = pickle.dumps(subject)
    assert len(content) < len(pickle.dumps(subject.obfuscator)) + 500
    assert pickle.loads(content).texts("text", ["w1 w7"], 0) == before
    assert len(pickle.dumps(subject)) == len(content)


def test_errors_name_rows_and_nothing_else(small_space):
    subject = sanitizer(small_space, pipeline=TextPipeline(unknown="error"))
    with pytest.raises(SottovoceError) as caught:
        subject.texts("text", ["word1", "word2 melanoma"], 40)
    assert "row 42" in str(caught.value)
    assert "melanoma" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_no_word_and_no_secret_is_in_a_report_or_repr(small_space):
    pipeline = TextPipeline(keep=frozenset({"melanoma"}))
    subject = sanitizer(
        small_space, pipeline=pipeline, deny=frozenset({"diabetes"}), linkable=SECRET
    )
    _, counts = subject.texts("text", ["melanoma diabetes asthma word1"], 0)
    for said in (repr(subject), str(Report(subject, counts).to_dict())):
        assert not any(word in said for word in ("melanoma", "diabetes", "asthma", SECRET.hex()))
        assert repr(SECRET)[2:-1] not in said


def test_the_report_states_what_happened(small_space):
    pipeline = TextPipeline(keep=frozenset({"melanoma"}), restore_case=True)
    subject = sanitizer(small_space, pipeline=pipeline, deny=frozenset({"word5"}))
    _, counts = subject.texts("text", ["melanoma word5 asthma word1", None], 0)
    said = Report(subject, counts + DatasetCounts(rows=2)).to_dict()
    assert said["rows"] == 2
    assert said["texts"] == {"all": 2, "empty": 1, "rewritten": 1, "withheld": 0}
    assert said["words"]["all"] == 4
    assert said["words"]["denied"] == 1
    assert said["unknown"] == {
        "policy": "encode",
        "encoded": 0,
        "uniform": 1,
        "dropped": 0,
        "kept": 0,
    }
    assert said["in_clear"] == {"all": 1, "unknown": 0, "keep_list": 1, "not_protected": 0}
    assert said["seeded"] is True
    assert said["mechanism"] == "cmp:epsilon=3"
    assert said["space"]["sha256"] == small_space.sha256
    assert said["space"]["output_vocabulary"] == small_space.size - 1
    caveats = " ".join(said["guarantee"]["caveats"])
    for limit in ("keep list", "deny-list", "case pattern", "uniform draws", "seed", "columns"):
        assert limit in caveats


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"columns": ()}, "at least one column"),
        ({"columns": ("a", "a")}, "twice"),
        ({"rng": -1}, "whole number"),
        ({"rng": np.random.default_rng(1)}, "whole number"),
    ],
)
def test_wrong_use_is_refused_before_any_work(toy, options, says):
    with pytest.raises(UsageError, match=says):
        sanitizer(toy, **options)


# Mechanisms that rewrite whole texts


@dataclass(frozen=True, repr=False, eq=False)
class Backwards(TextMechanism):
    name: ClassVar[str] = "backwards"
    summary: ClassVar[str] = "says it backwards, unless that is the same"
    paper: ClassVar[str] = ""

    @property
    def guarantee(self):
        return Guarantee("none", None, scope="text")

    def rewrite(self, text, n, pipeline, rng):
        words = text.split()
        if not words or words == words[::-1]:
            return Rewriting(())
        return Rewriting((" ".join(words[::-1]),))


def test_whole_texts_are_rewritten_or_withheld():
    subject = Sanitizer(Obfuscator(Backwards()), ("text",))
    released, counts = subject.texts("text", ["one two", "same same", "", None], 0)
    assert released == ["two one", "", "", None]
    assert (counts.texts, counts.rewritten, counts.withheld, counts.empty) == (4, 1, 1, 2)
    said = Report(subject, counts).to_dict()
    assert said["words"] is None
    assert said["texts"] == {"all": 4, "empty": 2, "rewritten": 1, "withheld": 1}
    with pytest.raises(UsageError, match="neither linkable"):
        replace(subject, linkable=SECRET)
