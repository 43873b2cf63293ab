"""Protecting parts of speech: what stays in clear, and that nothing doubtful does."""

from __future__ import annotations

import importlib.util
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.language import tagging
from sottovoce.language.tagging import load_tagger
from sottovoce.text import NOUNS_AND_ADJECTIVES, TextPipeline, normalize, tagged
from sottovoce.text import pipeline as pipeline_module
from sottovoce.text.protection import protected_tags

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("textblob") is None,
    reason="no word list: pip install 'sottovoce[language]'",
)


class Everything:
    """Knows every word, by one id."""

    def id(self, word):
        return 0


SPACE = Everything()
NOUNS = TextPipeline(protect="noun")
PUBLISHED = TextPipeline(protect=NOUNS_AND_ADJECTIVES)


def released(text, protect="noun", **options):
    prepared = TextPipeline(protect=protect, **options).prepare(text, SPACE)
    return prepared.render(["W"] * len(prepared))


# Naming parts of speech


@pytest.mark.parametrize(
    ("listed", "tags"),
    [
        ("noun", "NN NNS NNP NNPS"),
        ("adjective,adverb", "JJ JJR JJS RB RBR RBS"),
        (" Verb , number ", "VB VBD VBG VBN VBP VBZ CD"),
        ("nn,PRP$", "NN PRP$"),
        ("number,JJ", "CD JJ"),
        (NOUNS_AND_ADJECTIVES, "NN NNS NNP NNPS JJ JJS"),
        ("all", ""),
        ("content", ""),
    ],
)
def test_parts_of_speech_have_names_and_tags(listed, tags):
    assert protected_tags(listed) == frozenset(tags.split())
    TextPipeline(protect=listed)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("nouns", "did you mean 'noun'"),
        ("noun,adjctive", "did you mean 'adjective'"),
        ("al", "did you mean 'all'"),
        ("all,noun", "a part that is no choice"),
        ("content,JJ", "a part that is no choice"),
        ("", "list parts of speech"),
        ("noun,", "list parts of speech"),
        ("NN JJ", "NN,NNS,NNP,NNPS,JJ,JJS"),
        ("FW", "list parts of speech"),
    ],
)
def test_other_names_are_refused_with_a_way_out(wrong, hint):
    with pytest.raises(UsageError, match=hint):
        TextPipeline(protect=wrong)


def test_options_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="protect must be a str"):
        TextPipeline(protect=["noun"])
    with pytest.raises(UsageError, match="tagger must be a str"):
        TextPipeline(protect="noun", tagger=None)
    with pytest.raises(UsageError, match="unknown tagger"):
        TextPipeline(protect="noun", tagger="magic")


# What stays in clear


def test_plain_words_of_other_kinds_stay_in_clear_and_are_counted_and_listed():
    prepared = NOUNS.prepare("What is the best treatment for skin cancer?", SPACE)
    assert prepared.render(["W"] * len(prepared)) == "What is the best W for W W?"
    assert prepared.counts.kept_unprotected == prepared.counts.kept == 5
    assert prepared.kept == ("What", "is", "the", "best", "for")
    assert "5 words kept in clear (not protected)" in prepared.caveats()
    assert prepared.unknown == ()


@pytest.mark.parametrize(
    ("protect", "expected"),
    [
        ("noun", "he quickly sold 3 old W"),
        ("adjective", "he quickly sold 3 W cars"),
        ("verb", "he quickly W 3 old cars"),
        ("adverb", "he W sold 3 old cars"),
        ("number", "he quickly sold W old cars"),
        ("PRP", "W quickly sold 3 old cars"),
        ("all", "W W W W W W"),
    ],
)
def test_each_part_of_speech_can_be_chosen(protect, expected):
    assert released("he quickly sold 3 old cars", protect) == expected


@pytest.mark.parametrize(
    "doubtful",
    [
        "jane@example.org",
        "https://example.org/quickly",
        "www.example.org",
        "😀",
        "🇮🇹",
        "€",
        "$20",
        "быстро",
        "猫",
        "b2b",
        "9th",
        "WHO",
        "IT",
        "BE",
        "U.S",
        "zorbly",
        "unzorbed",
        "20191205",
        "2019-12-05",
        "10:30",
        "3.50",
        "1,000",
        "12345",
        "quick\u200bly",
        "quickl\u0301y",
        "Zorbly",
        "and/or",
        "is_the",
        "bona",
        "٣",
    ],
)
def test_whatever_the_tagger_cannot_judge_is_protected(doubtful):
    prepared = TextPipeline(protect="UH").prepare(f"then {doubtful} came", SPACE)
    assert prepared.kept == ("then", "came")
    assert len(prepared) >= 1


def test_contractions_and_possessives_are_judged_by_the_word_they_end():
    assert released("what's the dog's name, don't ask Paula's") == "what's the W W, don't ask W"
    assert released("what’s the dog’s name") == "what’s the W W"


def test_compounds_are_protected_whole_unless_the_tagger_knows_them():
    assert released("a zorb-and-the-zorb thing", "verb") == "a W thing"

    class Parts(Everything):
        def id(self, word):
            return 0 if len(word) < 6 else -1

    prepared = TextPipeline(protect="verb").prepare("a zorb-and-the-zorb thing", Parts())
    assert prepared.kept == ("a", "thing")
    assert len(prepared) == 4


def test_the_keep_list_still_holds_and_unknown_words_still_meet_their_policy():
    class Nothing:
        def id(self, word):
            return -1

    pipeline = TextPipeline(protect="noun", keep=frozenset({"cancer"}), unknown="drop")
    prepared = pipeline.prepare("what is skin cancer", Nothing())
    assert prepared.counts.kept_listed == 1
    assert prepared.counts.kept_unprotected == 2
    assert prepared.counts.dropped == 1
    assert prepared.render([]) == "what is cancer"


def test_the_published_protection_leaves_comparatives_in_clear():
    assert released("a bigger house", NOUNS_AND_ADJECTIVES) == "a bigger W"
    assert released("a bigger house", "noun,adjective") == "a W W"


def test_half_of_the_words_of_real_queries_stay_in_clear_as_published(shared_data):
    lines = (shared_data / "topics" / "dl19" / "queries.jsonl").read_text().splitlines()
    queries = [json.loads(line)["text"] for line in lines]
    prepared = [PUBLISHED.prepare(query, SPACE) for query in queries]
    assert len(prepared) == 43
    assert sum(len(each) for each in prepared) == 120
    assert sum(each.counts.kept_unprotected for each in prepared) == 111
    kept = {word for each in prepared for word in each.kept}
    assert {"what", "is", "the", "of", "founded", "left"} <= kept
    assert not {"volunterilay", "ww1", "bluetooth", "vide", "jamaica", "medicare's"} & kept


# Context


def test_the_same_word_is_judged_by_its_neighbours_even_in_one_text():
    text = "can you cook it? ask the cook, you cook"
    assert released(text) == "can you cook it? ask the W, you cook"
    for part in ("the cook", "you cook", "the cook"):
        assert released(part) == part.replace("the cook", "the W")


def test_where_a_sentence_ends_matters():
    assert released("we met. Fry it", "noun") == "we met. Fry it"
    assert released("we met Fry", "noun") == "we met W"
    assert released("we met\n\nFry it", "noun") == "we met\n\nFry it"


def test_a_result_depends_on_its_text_alone():
    texts = ["the cook", "you cook", "cook", "cook the cook", "Will you cook", "we met Will"]
    alone = []
    for text in texts:
        pipeline_module._remembered.clear()
        alone.append(NOUNS.prepare(text, SPACE).literals)
    pipeline_module._remembered.clear()
    for order in (texts, texts[::-1], texts * 2):
        for text in order:
            assert NOUNS.prepare(text, SPACE).literals == alone[texts.index(text)]


def test_a_text_of_many_blocks_is_judged_as_one():
    sentence = "you cook what the cook of b2b Company's house likes; "
    text = sentence * 10_000
    prepared = PUBLISHED.prepare(text, SPACE)
    assert prepared.render(["W"] * len(prepared)) == (
        "you cook what the W of W W W likes; " * 10_000
    )
    assert prepared.counts.kept_unprotected == 60_000


def test_a_stretch_without_blanks_longer_than_a_block_works():
    text = "the " + "ab-" * 100_000 + "c of it"
    assert released(text).startswith("the W")
    assert released(text).endswith("W of it")


# Failing closed


def test_without_a_tagger_nothing_is_released(monkeypatch):
    tagging._load.cache_clear()
    monkeypatch.setattr(tagging, "find_spec", lambda name: None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[language\]"):
        NOUNS.prepare("skin cancer", SPACE)
    assert TextPipeline(protect="content").prepare("skin cancer", SPACE).counts.known == 2
    tagging._load.cache_clear()


class Broken:
    name = "broken"

    def __init__(self, tags):
        self.tags = tags

    def knows(self, word):
        return True


def test_a_tagger_that_fails_or_loses_words_releases_nothing_and_names_no_word():
    def fail(tokens):
        raise ValueError(f"cannot tag {tokens}")

    with pytest.raises(SottovoceError, match=r"broken failed \(ValueError\)") as caught:
        tagged("skin cancer", Broken(fail))
    assert "cancer" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with pytest.raises(SottovoceError, match="lost words"):
        tagged("skin cancer", Broken(lambda tokens: ["DT"]))


# Any text

words = st.sampled_from(
    ["the", "cook", "Will", "IT", "9", "b2b", "zorb", "don't", "dog's", "x@y.z"]
)
texts = st.one_of(st.text(), st.lists(st.one_of(words, st.text(max_size=3))).map(" ".join))


@given(texts)
def test_tags_come_with_offsets_into_the_normalised_text(text):
    normal = normalize(text)
    tokens = tagged(text, load_tagger())
    assert all(normal[token.start : token.end] == token.surface for token in tokens)
    assert all(token.tag for token in tokens)
    for token in tokens:
        assert repr(token) == f"TaggedToken({token.start}, {token.end}, {token.tag})"


@given(texts)
def test_only_plain_known_words_of_other_kinds_are_ever_kept(text):
    tagger = load_tagger()
    tags = {(token.surface, token.tag) for token in tagged(text, tagger)}
    prepared = PUBLISHED.prepare(text, SPACE)
    for kept in prepared.kept:
        assert any(s == kept and t not in protected_tags(PUBLISHED.protect) for s, t in tags)
        assert tagger.knows(kept) or (kept.isdecimal() and len(kept) <= 4)
        assert len(kept) == 1 or not kept.isupper()
    assert prepared.counts.kept == prepared.counts.kept_unprotected


@given(texts)
def test_protecting_tags_releases_no_more_than_leaving_words_out(text):
    """What is neither slot nor kept word is punctuation and whitespace, as with all words."""
    everything = TextPipeline().prepare(text, SPACE)
    chosen = PUBLISHED.prepare(text, SPACE)
    outside = set("".join(everything.literals))
    assert set("".join(chosen.literals)) <= outside | set("".join(chosen.kept)) | {" "}
    assert len(chosen) + chosen.counts.kept >= len(tagged(text, load_tagger()))
