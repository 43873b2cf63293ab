"""Effectiveness against values worked out by hand and against trec_eval's own."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation import (
    Measured,
    depth_matched,
    effectiveness,
    no_privacy,
    pooled_recall,
    read_run,
    write_run,
)
from sottovoce.search.reranking import load_reranker

GRADES = {"1": {"a": 3, "b": 2, "c": 1, "d": 0}, "2": {"e": 1, "f": 1}}


def test_ndcg_uses_linear_gains_and_a_logarithmic_discount():
    found = effectiveness({"1": ["b", "x", "a"], "2": ["f"]}, GRADES, ["nDCG@10"])["nDCG@10"]
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert found.values["1"] == pytest.approx((2 + 3 / 2) / ideal)
    assert found.values["2"] == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert found.mean == pytest.approx(np.mean(list(found.values.values())))


def test_precision_divides_by_ten_and_recall_by_what_is_relevant():
    measured = effectiveness({"1": ["b", "d", "c"], "2": ["x"]}, GRADES)
    assert measured["P@10"].values == pytest.approx({"1": 0.2, "2": 0})
    assert measured["R@100"].values == pytest.approx({"1": 2 / 3, "2": 0})


def test_the_threshold_says_what_is_relevant():
    run = {"1": ["b", "c"], "2": ["e"]}
    measured = effectiveness(run, GRADES, ["P@10", "R@100", "nDCG@10"], threshold=2)
    assert measured["P@10"].values == pytest.approx({"1": 0.1})
    assert measured["R@100"].values == pytest.approx({"1": 1 / 2})
    assert measured["nDCG@10"].values.keys() == {"1", "2"}
    assert pooled_recall(run, GRADES, threshold=3).values == {"1": 0.0}
    assert effectiveness(run, GRADES, ["P(rel=3)@10"])["P(rel=3)@10"].values == {"1": 0.0}


def test_ties_keep_the_order_of_the_ranking():
    for ids in (["a", "x", "y"], ["y", "x", "a"]):
        by_list = effectiveness({"1": ids}, GRADES, ["nDCG@1"])["nDCG@1"]
        by_score = effectiveness({"1": dict.fromkeys(ids, 0.5)}, GRADES, ["nDCG@1"])["nDCG@1"]
        assert by_list.values == by_score.values
        assert by_list.values["1"] == (1.0 if ids[0] == "a" else 0.0)


def test_scores_decide_the_order_of_a_run():
    run = {"1": {"c": 0.1, "a": 0.9}}
    assert effectiveness(run, GRADES, ["nDCG@1"])["nDCG@1"].values["1"] == 1.0


def test_a_document_twice_counts_once():
    once, twice = (effectiveness({"1": ids}, GRADES) for ids in (["a", "b"], ["a", "b", "a"]))
    assert once == twice


def test_queries_without_answer_count_and_queries_without_relevant_documents_do_not():
    judgments = {**GRADES, "3": {"g": 0}}
    for measured in effectiveness({"1": [], "9": ["a"]}, judgments).values():
        assert measured.values == {"1": 0.0, "2": 0.0}
    assert pooled_recall({"1": [], "9": ["a"]}, judgments).values == {"1": 0.0, "2": 0.0}


def test_pooled_recall_is_the_share_of_the_relevant_in_the_pool():
    pools = {"1": {"a", "c", "d", "x"}, "2": ["e", "e", "f"]}
    assert pooled_recall(pools, GRADES).values == pytest.approx({"1": 2 / 3, "2": 1})
    assert pooled_recall(pools, GRADES).mean == pytest.approx(5 / 6)


documents = st.sampled_from("abcdefgh")


@given(
    st.dictionaries(st.sampled_from("12345"), st.lists(documents, unique=True, max_size=8)),
    st.dictionaries(
        st.sampled_from("12345"), st.dictionaries(documents, st.integers(0, 3)), min_size=1
    ),
)
def test_measures_are_those_of_trec_eval(run, judgments):
    import pytrec_eval

    scores = {q: {d: float(-i) for i, d in enumerate(ids)} for q, ids in run.items() if ids}
    graded = {query: grades for query, grades in judgments.items() if grades}
    evaluator = pytrec_eval.RelevanceEvaluator(graded, {"ndcg_cut.10", "P.10", "recall.100"})
    expected = evaluator.evaluate(scores)
    measured = effectiveness(run, graded)
    names = {"nDCG@10": "ndcg_cut_10", "P@10": "P_10", "R@100": "recall_100"}
    for ours, theirs in names.items():
        for query, value in measured[ours].values.items():
            assert value == pytest.approx(expected.get(query, {}).get(theirs, 0.0))


def test_the_interval_is_seeded_holds_the_mean_and_narrows_with_the_level():
    values = np.random.default_rng(3).uniform(size=200)
    measured = Measured("x", {str(i): value for i, value in enumerate(values)})
    low, high = measured.interval(samples=2000)
    assert measured.interval(samples=2000) == (low, high)
    assert measured.interval(samples=2000, seed=1) != (low, high)
    assert low < measured.mean < high
    inner = measured.interval(level=0.5, samples=2000)
    assert low < inner[0] < inner[1] < high
    # The normal approximation holds for 200 values.
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)


def test_nothing_measured_is_no_number():
    empty = Measured("x", {})
    assert math.isnan(empty.mean)
    assert all(map(math.isnan, empty.interval()))
    assert Measured("x", {"1": 0.5}).interval(samples=10) == (0.5, 0.5)


@pytest.fixture(scope="module")
def demo():
    return load_collection("demo")


@pytest.fixture(scope="module")
def bm25(demo):
    return BM25(demo.documents)


def test_without_privacy_the_original_query_is_searched_and_re_ranked(demo, bm25):
    run = no_privacy(bm25, demo.queries, load_reranker("none"), depth=5)
    answers = bm25.search(list(demo.queries.values()), 5)
    assert [list(run[q]) for q in demo.queries] == [[h.doc_id for h in hits] for hits in answers]
    ranked = no_privacy(bm25, demo.queries, load_reranker("light"), depth=5)
    assert [set(run[q]) for q in run] == [set(ranked[q]) for q in ranked]
    assert [list(run[q]) for q in run] != [list(ranked[q]) for q in ranked]
    assert all(list(s.values()) == sorted(s.values(), reverse=True) for s in ranked.values())


def test_the_matched_baseline_is_as_deep_as_each_pool(demo, bm25):
    queries = dict(list(demo.queries.items())[:3])
    depths = dict(zip(queries, (0, 1, 7), strict=True))
    run = depth_matched(bm25, queries, load_reranker("none"), depths)
    for (query_id, query), depth in zip(queries.items(), (0, 1, 7), strict=True):
        assert list(run[query_id]) == [hit.doc_id for hit in bm25.search([query], depth)[0]]
    assert depth_matched(bm25, {}, load_reranker("none"), {}) == {}


def test_a_deeper_baseline_recalls_more(demo, bm25):
    shallow, deep = (
        pooled_recall(no_privacy(bm25, demo.queries, load_reranker("none"), k), demo.judgments)
        for k in (3, 50)
    )
    assert shallow.mean < deep.mean
    assert len(deep.values) == len(demo.queries)


def test_re_ranking_pays_on_the_demo_collection(demo, bm25):
    means = {
        name: effectiveness(
            no_privacy(bm25, demo.queries, load_reranker(name)), demo.judgments, ["nDCG@10"]
        )["nDCG@10"].mean
        for name in ("none", "light")
    }
    assert means["light"] > means["none"] + 0.05


def test_bm25_on_judged_passages_scores_as_trec_eval_says(shared_data):
    folder = load_collection(shared_data / "ir" / "msmarco-dl19-pool")
    run = no_privacy(BM25(folder.documents), folder.queries, load_reranker("none"))
    measured = effectiveness(run, folder.judgments)
    assert measured["nDCG@10"].mean == pytest.approx(0.4736, abs=0.0005)
    assert measured["R@100"].mean == pytest.approx(0.5754, abs=0.0005)
    assert pooled_recall(run, folder.judgments).mean == pytest.approx(measured["R@100"].mean)
    low, high = measured["nDCG@10"].interval(samples=1000)
    assert low < 0.4736 < high


def test_a_run_is_read_as_it_was_written(tmp_path):
    run = {"q1": {"b": 1 / 3, "c": 1.5, "a": 1 / 3}, "q2": {"ü": -2e-17}}
    write_run(tmp_path / "run.txt", run, tag="mine")
    read = read_run(tmp_path / "run.txt")
    assert read == run
    assert [list(scores) for scores in read.values()] == [["c", "b", "a"], ["ü"]]
    lines = (tmp_path / "run.txt").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "q1 Q0 b 2 0.3333333333333333 mine"
    assert [path.name for path in tmp_path.iterdir()] == ["run.txt"]


def test_trec_eval_reads_our_runs(tmp_path):
    import ir_measures

    run = {"1": {"b": 2.0, "a": 1.0}, "2": {"f": 0.5}}
    write_run(tmp_path / "run.txt", run)
    read = list(ir_measures.read_trec_run(str(tmp_path / "run.txt")))
    expected = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], GRADES, read)
    assert effectiveness(run, GRADES)["nDCG@10"].mean == pytest.approx(
        next(iter(expected.values()))
    )


@pytest.mark.parametrize(
    ("run", "tag"),
    [({"a b": {"c": 1.0}}, "t"), ({"a": {"": 1.0}}, "t"), ({"a": {"c": 1.0}}, "t u")],
)
def test_what_a_run_cannot_say_is_refused_and_nothing_is_left(tmp_path, run, tag):
    with pytest.raises(UsageError, match="blank"):
        write_run(tmp_path / "run.txt", run, tag)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_runs_are_named_with_the_line(tmp_path):
    file = tmp_path / "run.txt"
    file.write_text("1 Q0 a 1 2.0 t\n1 Q0 secret first 2.0 t\n")
    with pytest.raises(SottovoceError, match="line 2") as caught:
        read_run(file)
    assert "secret" not in str(caught.value)
    with pytest.raises(SottovoceError, match="cannot read"):
        read_run(tmp_path / "none.txt")
    with pytest.raises(SottovoceError, match="cannot write"):
        write_run(tmp_path / "none" / "run.txt", {})


def test_wrong_use_is_refused_with_advice(monkeypatch):
    with pytest.raises(UsageError, match=r"nDCG@10, P@10"):
        effectiveness({}, GRADES, ["nDGC@10"])
    with pytest.raises(UsageError, match="threshold"):
        pooled_recall({}, GRADES, threshold=0)
    with pytest.raises(UsageError, match="level"):
        Measured("x", {}).interval(level=95)
    with pytest.raises(UsageError, match="sample"):
        Measured("x", {}).interval(samples=0)
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[evaluation\]"):
        effectiveness({}, GRADES)
