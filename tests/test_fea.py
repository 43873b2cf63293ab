"""FEA against an oracle that slides its windows one by one, and on real passages."""

from __future__ import annotations

import json
import math
import pickle
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from plain_engine import Plain

from sottovoce.collections import Document, read_corpus
from sottovoce.engines import BM25
from sottovoce.errors import UsageError
from sottovoce.language.wordnet import WordNet
from sottovoce.mechanisms import mechanism
from sottovoce.mechanisms.base import Rewriting
from sottovoce.mechanisms.fea import FEA, WORDS_READ, DenyList, allowed_terms, ndcg
from sottovoce.text import FUNCTION_WORDS, TextPipeline
from sottovoce.text.words import content_words, stems, words

FISH = [
    "Goldfish grow quickly in large ponds with clean water.",
    "A pond needs a filter; filters keep water clean for goldfish.",
    "Tank size limits growth: small tanks stunt goldfish.",
    "Parrots like seeds, nuts and company.",
    "Clean water and a filter help any carp in a pond.",
]


def engine_of(*texts: str) -> BM25:
    return BM25([Document(str(number), "", text) for number, text in enumerate(texts)])


@pytest.fixture(scope="module")
def fish(wordnet) -> FEA:
    return FEA(engine=engine_of(*FISH), wordnet=wordnet)


@pytest.fixture(scope="module")
def pool(wordnet, shared_data) -> FEA:
    passages = read_corpus(shared_data / "ir" / "msmarco-dl19-pool")
    return FEA(engine=BM25(passages), wordnet=wordnet)


@pytest.fixture(scope="module")
def small_pool(wordnet, shared_data) -> FEA:
    passages = islice(read_corpus(shared_data / "ir" / "msmarco-dl19-pool"), 600)
    return FEA(engine=BM25(passages), wordnet=wordnet, window=5, targets=4)


def rewrite(fea: FEA, text: str, n: int = 50) -> Rewriting:
    return fea.rewrite(text, n, TextPipeline(), default_rng(0))


def denied_stems(text: str, wordnet: WordNet) -> set[str]:
    """Stems of the text's words, and of their neighbours as nouns, from the definition."""
    found = set(words(text))
    for word in set(content_words(text)):
        for sense in wordnet.senses(word, "n"):
            for near in (sense, *sense.hyponyms(), *sense.hypernyms()):
                found.update(word for lemma in near.lemmas for word in content_words(lemma))
    return {stem for stem in stems(sorted(found)) if len(stem) > 2} | set(words(text))


def oracle(fea: FEA, text: str, n: int) -> list[str]:
    """All windows, all sets, all rankings, one at a time."""
    targets = [hit.doc_id for hit in fea.engine.search([text], fea.targets)[0]]
    denied = DenyList(text, fea.wordnet)
    spelling: dict[str, str] = {}
    sets = set()
    for target in targets:
        places = list(allowed_terms(fea.engine.text(target), denied))
        stem_of = {term: stems([term])[0] for term in places if term}
        for term in filter(None, places):
            spelling.setdefault(stem_of[term], term)
        for start in range(len(places)):
            inside = {stem_of[term] for term in places[start : start + fea.window] if term}
            for size in range(1, fea.terms + 1):
                sets.update(frozenset(chosen) for chosen in combinations(inside, size))
    ranked = []
    for chosen in sets:
        query = " ".join(sorted(spelling[stem] for stem in chosen))
        found = [hit.doc_id for hit in fea.engine.search([query], 100)[0]]
        missing = [target for target in targets if target not in found]
        order = found + [None] * (100 - len(found)) + missing
        gain = sum(1 / math.log2(order.index(target) + 2) for target in targets)
        ideal = sum(1 / math.log2(place + 2) for place in range(len(targets)))
        ranked.append((-round(gain / ideal, 9), len(chosen), query))
    return [query for _, _, query in sorted(ranked)[:n]]


def test_released_are_the_candidates_that_rank_the_targets_best(small_pool):
    for text in ("what is wifi", "anthropology definition", "types of food", "cost of concrete"):
        released = rewrite(small_pool, text, 30).variants
        assert len(released) == 30
        assert list(released) == oracle(small_pool, text, 30)


def test_ndcg_counts_found_targets_by_rank_and_missing_ones_after_the_hundredth():
    ideal = 1 + 1 / math.log2(3)
    expected = [
        1.0,
        1.0,
        (1 + 1 / math.log2(102)) / ideal,
        (1 / math.log2(102) + 1 / math.log2(103)) / ideal,
        (1 / math.log2(51) + 1 / math.log2(101)) / ideal,
    ]
    measured = ndcg(np.array([[1, 2], [2, 1], [1, 0], [0, 0], [50, 100]]))
    assert measured == pytest.approx(expected, abs=1e-9)


def test_words_of_the_text_and_their_neighbours_never_come_out(wordnet):
    engine = engine_of(
        "Pneumonia is an illness; viral pneumonia, bronchopneumonias and fever spread in winter.",
        "Fever, cough and diseases in winter. PNEUMONIA's cause: bacteria.",
    )
    result = rewrite(FEA(engine=engine, wordnet=wordnet), "pneumonia", 999)
    released = {word for variant in result.variants for word in variant.split()}
    assert {"fever", "winter", "bacteria"} <= released
    hyponyms, hypernyms = {"bronchopneumonias", "viral"}, {"illness", "disease", "diseases"}
    assert not released & ({"pneumonia"} | hyponyms | hypernyms)


@pytest.mark.parametrize(
    ("text", "passage", "spellings"),
    [
        ("wifi", "Wi-Fi router: wifi at home", {"wi", "fi", "wifi"}),
        ("wi-fi", "wifi wi-fi router at home", {"wi", "fi", "wifi"}),
        ("cafe", "cafe café Cafés at home", {"cafe", "café", "cafés"}),
        ("café", "cafe café Cafés at home", {"cafe", "café", "cafés"}),
        ("medicare's", "medicare Medicare's home", {"medicare", "medicare's"}),
        ("representation", "represent representations home", {"represent", "representations"}),
        ("tv's", "TV TV's home", {"tv", "tv's"}),
        ("皮肤癌", "皮肤癌 治疗皮肤癌的方法 at home", {"皮肤癌", "治疗皮肤癌的方法"}),
    ],
)
def test_other_spellings_of_a_denied_word_are_denied(wordnet, text, passage, spellings):
    fea = FEA(engine=engine_of(passage), wordnet=wordnet)
    released = {word for variant in rewrite(fea, text).variants for word in variant.split()}
    assert "home" in released
    assert not released & spellings


def test_no_more_terms_than_asked_for_and_none_from_beyond_the_window(wordnet):
    engine = engine_of("goldfish alpha beta gamma delta omega")
    narrow = FEA(engine=engine, wordnet=wordnet, window=2, terms=2)
    single = {"alpha", "beta", "gamma", "delta", "omega"}
    pairs = {"alpha beta", "beta gamma", "delta gamma", "delta omega"}
    assert set(rewrite(narrow, "goldfish").variants) == single | pairs
    alone = FEA(engine=engine, wordnet=wordnet, terms=1)
    assert set(rewrite(alone, "goldfish").variants) == single


def test_denied_words_take_their_place_in_the_window(wordnet):
    engine = engine_of("alpha goldfish beta gamma")
    narrow = FEA(engine=engine, wordnet=wordnet, window=2, terms=2)
    assert set(rewrite(narrow, "goldfish").variants) == {"alpha", "beta", "gamma", "beta gamma"}


def test_spellings_with_one_stem_are_one_candidate_as_the_best_target_writes_it(fish):
    variants = rewrite(fish, "goldfish", 999).variants
    spelt = {word for variant in variants for word in variant.split()}
    assert len(spelt & {"pond", "ponds"}) == len(spelt & {"filter", "filters"}) == 1
    assert not any(len(set(stems(v.split()))) < len(v.split()) for v in variants)


def test_ties_go_to_fewer_words_then_by_alphabet(wordnet):
    fea = FEA(engine=engine_of("goldfish delta alpha omega"), wordnet=wordnet)
    assert rewrite(fea, "goldfish").variants == (
        *("alpha", "delta", "omega"),
        *("alpha delta", "alpha omega", "delta omega"),
        "alpha delta omega",
    )


def test_any_local_engine_works_and_gives_the_same(small_pool, wordnet):
    plain = FEA(engine=Plain(small_pool.engine), wordnet=wordnet, window=5, targets=4)
    for text in ("what is wifi", "types of food"):
        assert rewrite(plain, text) == rewrite(small_pool, text)


@pytest.mark.parametrize(
    "text", ["", " \n ", "the of and", "🍕", "日本語", "123456", "xqzzy wvvxq", "...", "\ud800"]
)
def test_a_text_that_finds_nothing_gives_no_variants_and_says_why(fish, text):
    result = rewrite(fish, text)
    assert result.variants == ()
    assert result.caveats == ("no document of the corpus answers the text: there are no variants",)


def test_targets_without_an_allowed_word_give_no_variants_and_that_is_said(wordnet):
    fea = FEA(engine=engine_of("the goldfish", "Goldfish's 1234 fish"), wordnet=wordnet)
    result = rewrite(fea, "goldfish")
    assert result.variants == ()
    assert "hold no word that may be released" in result.caveats[0]


def test_numbers_and_other_scripts_in_the_text_are_searched_for(wordnet):
    fea = FEA(engine=engine_of("model 4711 printer", "テスト data"), wordnet=wordnet)
    assert rewrite(fea, "4711").variants == ("model", "printer", "model printer")
    assert rewrite(fea, "テスト").variants == ("data",)


def test_fewer_variants_than_asked_for_are_counted_without_words(fish):
    result = rewrite(fish, "parrots", 999)
    assert result.caveats == (f"only {len(result.variants)} of 999 variants exist",)
    assert rewrite(fish, "parrots", 2).caveats == ()


def test_randomness_changes_nothing(fish):
    runs = {fish.rewrite("goldfish", 9, TextPipeline(), default_rng(s)).variants for s in range(3)}
    assert len(runs) == 1


some_words = st.sampled_from(sorted({w.casefold().strip(".,;:") for t in FISH for w in t.split()}))
texts = st.lists(some_words | st.text(max_size=4), max_size=6).map(" ".join)


@given(text=texts)
def test_the_original_never_comes_out_and_no_denied_stem_does(fish, text):
    variants = rewrite(fish, text, 999).variants
    assert len({variant.casefold() for variant in variants}) == len(variants)
    assert " ".join(text.casefold().split()) not in variants
    denied = denied_stems(text, fish.wordnet)
    for word in {word for variant in variants for word in variant.split()}:
        assert word not in FUNCTION_WORDS
        assert not {word, *stems([word])} & denied


@settings(max_examples=10)
@given(data=st.data())
def test_no_denied_stem_comes_out_of_real_passages(small_pool, shared_data, data):
    passage = small_pool.engine.text(
        data.draw(st.sampled_from([d.doc_id for d in small_pool.engine._documents]))
    )
    text = " ".join(data.draw(st.lists(st.sampled_from(passage.split()), min_size=1, max_size=4)))
    denied = denied_stems(text, small_pool.wordnet)
    for variant in rewrite(small_pool, text, 200).variants:
        assert not {*variant.split(), *stems(variant.split())} & denied


def test_real_queries_get_fifty_variants_without_their_words(pool, shared_data):
    file = shared_data / "ir" / "msmarco-dl19-pool" / "queries.jsonl"
    queries = [json.loads(line)["text"] for line in file.read_text().splitlines()][::6]
    for query in queries:
        variants = rewrite(pool, query).variants
        assert len(variants) == 50
        assert not any(set(query.casefold().split()) & set(v.split()) for v in variants)


def test_ten_thousand_words_share_none_with_their_variants(pool, shared_data):
    passages = read_corpus(shared_data / "ir" / "msmarco-dl19-pool")
    text = " ".join(" ".join(next(passages).text for _ in range(400)).split()[:10_000])
    result = rewrite(pool, text)
    assert not set(words(text)) & {word for v in result.variants for word in v.split()}


def test_long_documents_are_read_in_part(wordnet):
    many = [a + b + c for a in "bdfg" for b in "aeiou" for c in ("zon", "vek", "lum", "pax", "tid")]
    far = " ".join(f"{word}{end}" for word in many for end in ("ra", "ku", "mo", "ba"))
    fea = FEA(engine=engine_of(f"goldfish {far}"), wordnet=wordnet, terms=1)
    variants = rewrite(fea, "goldfish", 9000).variants
    assert len(variants) == WORDS_READ - 1
    assert far.split()[WORDS_READ] not in variants


def test_nothing_is_promised_and_the_limits_are_stated(fish):
    assert fish.guarantee.notion == "none"
    assert fish.guarantee.loss(1.0) == np.inf
    assert any("same corpus" in caveat for caveat in fish.guarantee.caveats)


def test_the_text_is_never_sent_to_a_remote_engine(fish, wordnet):
    class Remote(Plain):
        remote = True

    with pytest.raises(UsageError, match="on this machine"):
        FEA(engine=Remote(fish.engine), wordnet=wordnet)


def test_specs_build_it_and_impossible_parameters_are_refused(fish, wordnet):
    built = mechanism("fea:window=12,terms=2,targets=5", engine=fish.engine, wordnet=wordnet)
    assert built == FEA(engine=fish.engine, wordnet=wordnet, window=12, terms=2, targets=5)
    for wrong in ({"terms": 0}, {"terms": 6}, {"window": 2}, {"window": 51}, {"targets": 0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            FEA(engine=fish.engine, wordnet=wordnet, **wrong)


def test_a_pickle_rewrites_alike(fish):
    copy = pickle.loads(pickle.dumps(fish))
    assert rewrite(copy, "goldfish growth") == rewrite(fish, "goldfish growth")


def test_no_representation_holds_text(fish):
    assert "goldfish" not in repr(fish) + repr(DenyList("goldfish", fish.wordnet))
