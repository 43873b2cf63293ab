"""Downstream tasks: what is learnt from clean text is lost at tiny epsilon, kept at a large one."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
from itertools import permutations, product
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from small_tasks import questions, reviews
from typer.testing import CliRunner

import sottovoce
from sottovoce.cli import app
from sottovoce.collections import demo_log, load_collection
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation import LabelledTexts, Questions, evaluate, read_task
from sottovoce.evaluation.downstream.data import Candidates, judged_questions
from sottovoce.evaluation.downstream.scores import (
    Outcome,
    Setting,
    downstream_figure,
    summarize,
)
from sottovoce.evaluation.downstream.tasks import (
    average_precision,
    expected_average_precision,
    expected_reciprocal_rank,
    experiment,
    reciprocal_rank,
)
from sottovoce.pools import Pool

TINY, LARGE = 0.01, 1000.0
REGIMES = {
    "train clean, test obfuscated",
    "train obfuscated, test clean",
    "train obfuscated, test obfuscated",
}
TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def mechanisms(default_space):
    return [sottovoce.mechanism("cmp", space=default_space, epsilon=e) for e in (TINY, 12, LARGE)]


@pytest.fixture(scope="module")
def scores(mechanisms):
    return evaluate(reviews(), mechanisms, ["tfidf", "svm", "embeddings"], encoder="light")


def of(scores, model=None, epsilon=None):
    return [
        each
        for each in scores
        if (model is None or each.setting.model.startswith(model))
        and each.setting.epsilon == epsilon
    ]


# Classification


@pytest.mark.parametrize("model", ["tfidf", "svm", "embeddings"])
def test_a_model_learns_clean_text(scores, model):
    (clean,) = of(scores, model)
    assert clean.value > 0.95
    assert clean.loss is None


def test_the_majority_line_is_the_share_of_the_most_frequent_label(scores):
    (line,) = of(scores, "majority")
    assert line.value == 0.5


@pytest.mark.parametrize("model", ["tfidf", "svm", "embeddings"])
def test_a_tiny_epsilon_leaves_chance_in_every_regime(scores, model):
    found = of(scores, model, TINY)
    assert len(found) == 3
    for each in found:
        assert 0.3 < each.value < 0.7
        assert each.loss > 0.25
        assert each.unchanged < 0.02


@pytest.mark.parametrize("model", ["tfidf", "svm", "embeddings"])
def test_a_large_epsilon_loses_nothing_in_any_regime(scores, model):
    for each in of(scores, model, LARGE):
        assert each.loss == pytest.approx(0, abs=0.02)
        assert each.unchanged == 1


def test_every_release_is_scored_in_three_regimes_by_each_model(scores):
    for model, epsilon in product(("tfidf", "svm", "embeddings"), (TINY, 12, LARGE)):
        assert {each.regime for each in of(scores, model, epsilon)} == REGIMES
    assert len(scores) == 1 + 3 + 3 * 3 * 3


def test_scores_are_the_mean_over_seeds_and_lie_in_their_interval(scores):
    for each in scores:
        low, high = each.interval
        assert len(each.by_seed) == 3
        assert each.value == pytest.approx(np.mean(each.by_seed))
        assert 0 <= low <= each.value <= high <= 1
        assert each.to_dict()["seeded"] is True


def test_a_seed_decides_the_obfuscation_even_where_the_split_is_given(mechanisms):
    data = reviews()
    first, second = (LabelledTexts(data.texts[at::2], data.labels[at::2]) for at in (0, 1))

    def run(seeds):
        found = evaluate(first, mechanisms[1:2], test=second, seeds=seeds)
        return [each.by_seed for each in found[2:]]

    assert run((0, 1)) == run((0, 1))
    assert all(len(set(by_seed)) > 1 for by_seed in run(range(4)))


def test_a_data_set_is_obfuscated_once_for_all_models_and_regimes(mechanisms):
    calls = []
    seeds = (4, 5)
    evaluate(
        reviews(),
        mechanisms[:2],
        ["tfidf", "svm"],
        seeds=seeds,
        progress=lambda done, total: calls.append((done, total)),
    )
    total = len(seeds) * 2 * len(reviews())
    assert calls == [(done, total) for done in range(1, total + 1)]


def test_a_split_keeps_a_quarter_of_each_label_for_testing():
    data = LabelledTexts(tuple("abcdefghijkl") * 4, ("x",) * 36 + ("y",) * 12)
    chosen = experiment(data)
    train, test = chosen.split(0)
    assert sorted([*train, *test]) == list(range(48))
    assert [(chosen.labels[test] == label).sum() for label in (0, 1)] == [9, 3]
    assert not np.array_equal(test, chosen.split(1)[1])


def test_a_test_file_is_never_trained_on(mechanisms):
    data = reviews()
    swapped = LabelledTexts(
        data.texts, tuple({"good": "bad", "bad": "good"}[label] for label in data.labels)
    )
    chosen = experiment(data, test=swapped)
    train, test = chosen.split(3)
    assert (len(train), len(test), min(test)) == (128, 128, 128)
    (majority, clean) = evaluate(data, [], test=swapped)
    assert clean.value < 0.05
    assert majority.value == 0.5


def test_training_texts_that_stay_clean_are_not_obfuscated(mechanisms):
    data = reviews()
    train, test = data.sample(100), data.sample(40)
    compared = []

    def compare(texts, released):
        compared.append((texts, released))
        return {"jaccard": np.array([float(a == b) for a, b in zip(texts, released, strict=True)])}

    every = experiment(train, test=test).obfuscated(mechanisms[0], 3)
    chosen = experiment(train, test=test, regimes=("only test",), compare=compare)
    count = []
    similar, accuracy = chosen.obfuscated(mechanisms[0], 3, progress=count.append)
    assert sum(count) == len(test), "only these were obfuscated"
    (same,) = [outcome for outcome in every if outcome.setting.hidden == "only test"]
    assert accuracy.setting == same.setting
    assert np.array_equal(accuracy.values, same.values), "the same draws, text by text"
    ((texts, released),) = compared
    assert texts == test.texts
    assert (similar.setting.model, similar.setting.hidden) == ("similarity", "only test")
    assert similar.items.tolist() == list(range(100, 140))
    assert len(released) == 40


def test_the_majority_is_that_of_the_training_texts():
    data = LabelledTexts(("up", "up", "up", "down"), ("a", "a", "a", "b"))
    test = LabelledTexts(("up", "down", "down", "down"), ("a", "b", "b", "b"))
    assert evaluate(data, [], test=test, seeds=(0,))[0].value == 0.25


def test_texts_without_two_equal_words_are_labelled_by_the_majority():
    data = LabelledTexts(("one", "two", "three"), ("a", "a", "b"))
    test = LabelledTexts(("three", "one"), ("b", "a"))
    (majority, found) = evaluate(data, [], test=test, seeds=(0,))
    assert found.value == majority.value == 0.5


def test_whole_texts_replaced_from_a_pool_keep_the_signal_at_large_epsilon_only():
    data = reviews()
    rest = LabelledTexts(data.texts[1::2], data.labels[1::2])
    pool = Pool(data.texts[::2], "light")
    comet = [sottovoce.mechanism("comet-cmp", pool=pool, epsilon=e) for e in (TINY, LARGE)]
    found = evaluate(rest, comet)
    for each in found:
        if each.setting.epsilon == LARGE:
            assert each.value > 0.9
            assert each.unchanged == 0
        if each.setting.epsilon == TINY:
            assert each.value < 0.75


@pytest.mark.parametrize(
    ("labels", "says"), [("aaaa", "same label"), ("aaab", "only once")], ids=["one", "lonely"]
)
def test_labels_from_which_nothing_can_be_learnt_are_refused(labels, says):
    with pytest.raises(UsageError, match=says):
        experiment(LabelledTexts(("t",) * 4, tuple(labels)))


def test_training_texts_of_one_label_are_refused():
    with pytest.raises(UsageError, match="training texts"):
        experiment(LabelledTexts(("t", "u"), ("a", "a")), test=LabelledTexts(("v",), ("b",)))


def test_an_unknown_model_is_refused_with_advice():
    with pytest.raises(UsageError, match="did you mean 'tfidf'"):
        evaluate(reviews(), [], ["tfid"])


def test_the_bilstm_says_what_to_install():
    if TORCH:
        pytest.skip("torch is installed")
    with pytest.raises(SottovoceError, match="pip install"):
        evaluate(reviews(), [], ["bilstm"])


@pytest.mark.skipif(not TORCH, reason="torch is not installed")
def test_the_bilstm_learns_clean_text_and_loses_all_at_a_tiny_epsilon(default_space, mechanisms):
    def run():
        return evaluate(reviews(), mechanisms[::2], ["bilstm"], seeds=(0, 1), space=default_space)

    found = run()
    (clean,) = of(found, "bilstm")
    assert clean.value > 0.9
    assert all(each.value < 0.75 for each in of(found, "bilstm", TINY))
    assert all(abs(each.loss) < 0.05 for each in of(found, "bilstm", LARGE))
    assert [each.by_seed for each in found] == [each.by_seed for each in run()]


@pytest.mark.skipif(not TORCH, reason="torch is not installed")
def test_the_bilstm_takes_texts_without_a_known_word(default_space):
    from sottovoce.evaluation.downstream.models import WORDS, BiLSTM

    model = BiLSTM(default_space)
    features = model.features(["xqzzy", "", "good " * 1000, "a bad film"])
    assert features.shape == (4, WORDS)
    assert [(row >= 0).sum() for row in features] == [0, 0, WORDS, 3]
    assert model.fit(features, np.array([0, 1, 0, 1]), 0)(features).shape == (4,)


def test_real_reviews_are_learnt_and_lost_to_a_tiny_epsilon(shared_data):
    task = read_task(shared_data / "classification" / "imdb_5000.jsonl.gz").sample(500)
    comet = sottovoce.mechanism("comet-cmp", pool=Pool(demo_log(), "light"), epsilon=TINY)
    majority, clean, *others = evaluate(task, [comet], ["svm"])
    assert clean.value > majority.value + 0.15
    assert len(others) == 3
    assert all(each.value < majority.value + 0.05 for each in others)


# Intervals


def test_a_loss_is_compared_item_by_item():
    sides = (("train", "clean"), ("test", "clean"))
    obfuscated = (("train", "clean"), ("test", "obfuscated"))
    rng = Generator(PCG64(2))
    right = (rng.random(300) < 0.7).astype(float)
    fewer = right.copy()
    fewer[np.flatnonzero(right)[:9]] = 0
    items = np.arange(300)
    outcomes = [
        Outcome(Setting("m", "accuracy", None, None, sides), 0, items, right),
        Outcome(Setting("m", "accuracy", "cmp:epsilon=1", 1.0, obfuscated), 0, items, fewer),
    ]
    clean, other = summarize(outcomes)
    assert other.loss == pytest.approx(0.03)
    low, high = other.loss_interval
    assert 0 < low < 0.03 < high
    assert high - low < (clean.interval[1] - clean.interval[0]) / 2


def test_settings_measured_with_other_seeds_are_not_compared():
    sides = (("train", "clean"), ("test", "clean"))
    outcomes = [
        Outcome(Setting(model, "accuracy", None, None, sides), seed, np.arange(2), np.ones(2))
        for model, seed in (("m", 0), ("n", 1))
    ]
    with pytest.raises(UsageError, match="same seeds"):
        summarize(outcomes)


@pytest.mark.parametrize("seeds", [(), (1, 1)])
def test_seeds_are_given_and_differ(seeds):
    with pytest.raises(UsageError, match="seed"):
        evaluate(reviews(), [], seeds=seeds)


# Ranking


def test_measures_of_a_ranking_by_hand():
    ranked = np.array([False, True, False, True])
    assert average_precision(ranked) == (1 / 2 + 2 / 4) / 2
    assert reciprocal_rank(ranked) == 1 / 2
    assert average_precision(np.array([True, True, False])) == 1
    assert reciprocal_rank(np.array([False, False])) == average_precision(np.zeros(2)) == 0


@given(st.lists(st.booleans(), min_size=1, max_size=30).filter(any))
def test_measures_of_a_ranking_agree_with_ir_measures(ranked):
    judged = {"q": {str(at): int(right) for at, right in enumerate(ranked)}}
    run = {"q": {str(at): float(-at) for at in range(len(ranked))}}
    wanted = ir_measures.calc_aggregate([ir_measures.AP, ir_measures.RR], judged, run)
    array = np.array(ranked)
    assert average_precision(array) == pytest.approx(wanted[ir_measures.AP])
    assert reciprocal_rank(array) == pytest.approx(wanted[ir_measures.RR])


@pytest.mark.parametrize(("candidates", "right"), [(1, 1), (4, 1), (5, 2), (6, 3), (5, 5)])
def test_chance_is_the_mean_over_all_orders(candidates, right):
    orders = [np.array(each) < right for each in permutations(range(candidates))]
    precision = np.mean([average_precision(each) for each in orders])
    assert expected_average_precision(candidates, right) == pytest.approx(precision)
    rank = np.mean([reciprocal_rank(each) for each in orders])
    assert expected_reciprocal_rank(candidates, right) == pytest.approx(rank)


@pytest.fixture(scope="module")
def ranked(mechanisms):
    models = ["tfidf", "embeddings"]
    return evaluate(questions(), mechanisms[::2], models, encoder="light", seeds=range(5))


@pytest.mark.parametrize("model", ["tfidf", "embeddings"])
def test_answers_are_found_by_clean_questions_and_not_by_noise(ranked, model):
    chance = {each.setting.measure: each.value for each in of(ranked, "chance")}
    assert list(chance.values()) == pytest.approx([np.mean(1 / np.arange(1, 7))] * 2)
    assert [each.value for each in of(ranked, model)] == [1, 1]
    for each in of(ranked, model, LARGE):
        assert each.value == 1
        assert each.loss == 0
    noise = of(ranked, model, TINY)
    assert {each.regime for each in noise} == {
        "answers clean, questions obfuscated",
        "answers obfuscated, questions clean",
        "answers obfuscated, questions obfuscated",
    }
    for each in noise:
        assert abs(each.value - chance["MRR"]) < 0.25


def test_answers_that_score_alike_are_in_random_order():
    """A ranking by nothing must look like chance, not like the order of the file."""
    answers = ("one", "two", "three", "four")
    asked = [Candidates(f"q{at}", answers, (True, False, False, False)) for at in range(50)]
    found = evaluate(Questions(tuple(asked)), [], ["tfidf"])
    chance, _, ranked, _ = found
    assert chance.value == pytest.approx(np.mean(1 / np.arange(1, 5)))
    assert abs(ranked.value - chance.value) < 0.1


def test_ranking_takes_no_trained_model_and_no_test_file():
    with pytest.raises(UsageError, match="tfidf or embeddings"):
        evaluate(questions(), [], ["bilstm"])
    with pytest.raises(UsageError, match="learns nothing"):
        evaluate(questions(), [], test=reviews())


# Files


def write(folder, name, content):
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def test_csv_json_lines_and_gzip_say_the_same(tmp_path):
    wanted = LabelledTexts(('so "good", this', "bad\nindeed"), ("1", "0"))
    table = '\ufefflabel,id,Text\n1,x,"so ""good"", this"\n\n0,y,"bad\nindeed"\n'
    lines = '{"text": "so \\"good\\", this", "label": 1}\n\n{"label": "0", "text": "bad\\nindeed"}'
    for name, content in (("a.csv", table), ("a.jsonl", lines), ("b.csv.gz", table)):
        assert read_task(write(tmp_path, name, content)) == wanted


def test_questions_are_grouped_and_those_that_measure_nothing_left_out(tmp_path):
    rows = ["question,answer,label", "q,a,1", "r,a,1", "q,b,0", "r,b,true", "s,a,0", "q,c,FALSE"]
    task = read_task(write(tmp_path, "q.csv", "\n".join(rows)))
    assert [(c.question, c.answers, c.relevant) for c in task.asked] == [
        ("q", ("a", "b", "c"), (True, False, False))
    ]
    assert task.left_out == 2


def test_a_collection_gives_questions_with_its_judged_documents():
    collection = load_collection("demo")
    task = judged_questions(collection, grade=2)
    assert (len(task), task.left_out) == (65, 0)
    first = next(iter(collection.judgments))
    grades = collection.judgments[first]
    (found,) = (each for each in task.asked if each.question == collection.queries[first])
    assert len(found.answers) == len(grades)
    assert sum(found.relevant) == sum(grade >= 2 for grade in grades.values())


def test_candidates_of_a_collection_are_half_right_and_any_others():
    collection = load_collection("demo")
    everything, few = (judged_questions(collection, 2, size) for size in (None, 6))
    texts = {document.text for document in collection.documents}
    assert len(few) == len(everything) == 65
    for asked, among in zip(few.asked, everything.asked, strict=True):
        right = {
            text for text, is_right in zip(among.answers, among.relevant, strict=True) if is_right
        }
        assert len(asked.answers) == 6
        assert sum(asked.relevant) == min(3, len(right))
        assert [answer in right for answer in asked.answers] == list(asked.relevant)
        assert {*asked.answers} <= texts
    assert judged_questions(collection, 2, 6).asked == few.asked


SECRET = "xqzzysecret"
BAD_FILES = {
    "empty": ("", "empty"),
    "blank": (" \n\n", "empty"),
    "header only": ("text,label\n", "no row"),
    "no label column": (f"text,mark\n{SECRET},1\n", "no column label"),
    "no column": (f"{SECRET}\n", "no column text and label"),
    "ragged": (f"text,label\nfine,1\n{SECRET},1,2\n", "line 3"),
    "blank label": (f"text,label\n{SECRET}, \n", "label of the row that ends in line 2"),
    "not json": (f'{{"text": "a", "label": "b"}}\n{{{SECRET}', "line 2"),
    "not an object": (f'{{"text": "a", "label": "b"}}\n["{SECRET}"]', "line 2"),
    "no text": (f'{{"texts": "{SECRET}", "label": "b"}}', "line 1 of the file has no text"),
    "text is a list": (f'{{"text": ["{SECRET}"], "label": "b"}}', "has no text"),
    "wrong label": (f"question,answer,label\n{SECRET},b,maybe\n", "not 1"),
    "blank question": (f"question,answer,label\n ,{SECRET},1\n", "blank"),
    "nothing right": (f"question,answer,label\n{SECRET},b,0\n", "no question"),
    "not utf-8": (b"text,label\nfine,1\n\xff\xfe,2\n", "line 3"),
    "nul": (f"text,label\n{SECRET}\0,1\n", "NUL"),
}


@pytest.mark.parametrize(("content", "says"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_repeating_it(tmp_path, content, says):
    path = write(tmp_path, "bad.csv", content)
    with pytest.raises(UsageError, match=says) as caught:
        read_task(path)
    assert SECRET not in str(caught.value)


def test_a_limit_draws_the_same_rows_each_time_not_the_first_ones():
    data = reviews()
    some = data.sample(40)
    assert some == data.sample(40)
    assert len(set(some.labels)) == 2
    assert list(some.texts) == [text for text in data.texts if text in set(some.texts)]
    assert data.sample(1000) == data
    assert len(questions().sample(2)) == 2
    with pytest.raises(UsageError, match="limit"):
        data.sample(0)


def test_reprs_hold_no_text():
    assert "wonderful" not in repr(reviews())
    assert "bread" not in repr(questions()) + repr(questions().asked[0])


# The command


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "reviews.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("text", "label"))
        writer.writerows(zip(reviews().texts, reviews().labels, strict=True))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(app, ["downstream", *map(str, arguments)])


def test_the_command_prints_a_table_and_writes_figure_and_csv(default_space, csv_file, tmp_path):
    table, figure = tmp_path / "scores.csv", tmp_path / "scores.svg"
    result = run(
        csv_file, "-m", "cmp", "-m", "santext", "-e", "1,1000", "--csv", table, "--figure", figure
    )
    assert result.exit_code == 0, result.output
    assert "majority 0.500" in result.output
    assert "clean 1.000" in result.output
    assert "seeded" in result.stderr
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 2 + 2 * 2 * 3
    assert {row["train"] for row in rows} == {"clean", "obfuscated"}
    assert figure.read_text().startswith("<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv", "scores.svg"]


def test_the_command_gives_json(default_space, csv_file):
    result = run(csv_file, "-e", 5, "--seeds", 1, "--limit", 60, "--json")
    found = json.loads(result.stdout)
    assert [(row["model"], row["train"], row["test"]) for row in found] == [
        ("majority", "clean", "clean"),
        ("tfidf", "clean", "clean"),
        ("tfidf", "clean", "obfuscated"),
        ("tfidf", "obfuscated", "clean"),
        ("tfidf", "obfuscated", "obfuscated"),
    ]
    assert found[2]["mechanism"] == "cmp:epsilon=5"
    assert found[2]["items"] == 15


def test_the_command_ranks_answers(default_space, tmp_path):
    path = tmp_path / "questions.jsonl"
    rows = [
        {"question": each.question, "answer": answer, "label": int(right)}
        for each in questions().asked
        for answer, right in zip(each.answers, each.relevant, strict=True)
    ]
    rows.append({"question": "no answer", "answer": "to this", "label": 0})
    path.write_text("\n".join(map(json.dumps, rows)))
    result = run(path, "-e", 50, "--seeds", 2)
    assert result.exit_code == 0, result.output
    assert "MAP of tfidf" in result.output
    assert "MRR of tfidf" in result.output
    assert "1 question(s) were left out" in result.output
    assert "Fewer than three seeds" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-e", "many"], "an epsilon is a number"),
        (["--seeds", "0"], "at least one seed"),
        (["--limit", "0"], "a limit is at least 1"),
        (["--model", "tfidff"], "did you mean 'tfidf'"),
        (["-m", "cmpp"], "did you mean 'cmp'"),
        (["-m", "comet-cmp"], "--pool"),
        (["--figure", "picture.pdf"], ".png or an .svg"),
        (["--csv", "nowhere/at/all.csv"], "existing folder"),
        (["--test", "nowhere.csv"], "the test file: there is no such file"),
        (["-e", "-3"], "positive"),
    ],
)
def test_wrong_use_is_answered_with_advice(default_space, csv_file, arguments, says):
    result = run(csv_file, *arguments)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)


def test_a_figure_has_a_plot_for_each_regime_with_clean_and_majority_lines(scores):
    figure = downstream_figure(scores)
    assert len(figure.axes) == 3 * 3
    for plot in figure.axes:
        labels = {line.get_label() for line in plot.get_lines()}
        assert {"cmp", "clean", "majority"} == labels
    assert len({plot.get_ylim() for plot in figure.axes[:3]}) == 1


def test_a_figure_needs_an_epsilon(scores):
    with pytest.raises(UsageError, match="against epsilon"):
        downstream_figure([each for each in scores if each.setting.epsilon is None])


def test_a_benchmark_that_was_stopped_goes_on_where_it_was(
    default_space, csv_file, tmp_path, capsys
):
    place = Path(__file__).parents[1] / "benchmarks" / "downstream.py"
    spec = importlib.util.spec_from_file_location("downstream_benchmark", place)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    asked = [csv_file, "--limit", "80", "--models", "tfidf", "--cache", str(tmp_path)]
    benchmark.main([*asked, "--only", "comet-cmp", "--epsilons", "5", "--seeds", "2"])
    first = capsys.readouterr()
    assert first.err.count(" s\n") == 2 + 2
    benchmark.main([*asked, "--only", "comet-cmp", "--epsilons", "5", "--seeds", "3"])
    assert capsys.readouterr().err.count(" s\n") == 1 + 1
    benchmark.main([*asked, "--only", "comet-cmp", "--epsilons", "5", "--seeds", "2"])
    assert capsys.readouterr() == (first.out, "")
    benchmark.main(
        [*asked, "--only", "comet-cmp", "--epsilons", "5", "9", "--seeds", "2", "--kept"]
    )
    assert capsys.readouterr() == (first.out, "")
