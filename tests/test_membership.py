"""The membership audit finds members in clean text, says chance where there is nothing to find."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve
from typer.testing import CliRunner
from user_log import made_up_log

import sottovoce
from sottovoce.cli import app
from sottovoce.errors import UsageError
from sottovoce.privacy.membership_audit import MembershipReport, UserLog, membership, read_user_log
from sottovoce.privacy.membership_audit.ngrams import NGramModel, windows
from sottovoce.privacy.membership_audit.outcomes import (
    Scores,
    Setting,
    Sides,
    auc,
    auc_figure,
    either_way,
    summarize,
    threshold_at,
)
from sottovoce.privacy.membership_audit.shadow_models import (
    LOG_BINS,
    RANK_BINS,
    Numbering,
    draw_sides,
    features,
)

SMALL, LARGE = 0.01, 1000.0
MIDDLE = 2.5


@pytest.fixture(scope="module")
def log(small_space):
    return made_up_log(small_space, users=100, queries=20)


@pytest.fixture(scope="module")
def report(log, small_space):
    cmp = [sottovoce.mechanism("cmp", space=small_space, epsilon=e) for e in (SMALL, MIDDLE, LARGE)]
    return membership(log, cmp, members=25, shadows=2, min_queries=20, repeats=2, rng=7)


def outcome(report, epsilon, shadows):
    (found,) = (
        each
        for each in report.outcomes
        if (each.setting.epsilon, each.setting.shadows) == (epsilon, shadows)
    )
    return found


# What the audit finds


def test_members_are_found_in_clean_text(report):
    assert report.clean.auc > 0.98
    assert report.clean.tpr > 0.9
    assert report.clean.accuracy > 0.9


def test_nothing_is_found_where_nothing_of_the_text_was_released(report):
    hidden = outcome(report, SMALL, "obfuscated")
    low, high = hidden.auc_interval
    assert low < 0.5 < high
    assert hidden.risk_interval[0] == 0.5


def test_text_that_comes_out_nearly_as_it_was_is_found_like_clean_text(report):
    for shadows in ("obfuscated", "clean"):
        assert outcome(report, LARGE, shadows).auc > 0.98


def test_an_auditor_who_knows_the_mechanism_beats_one_who_learnt_from_clean_text(report):
    aware, naive = (outcome(report, MIDDLE, shadows) for shadows in ("obfuscated", "clean"))
    assert aware.auc_interval[0] > naive.auc_interval[1]
    # As published: every user is called a non-member, which is right for half of them.
    assert naive.recall < 0.1
    assert naive.accuracy == pytest.approx(0.5, abs=0.05)
    assert aware.accuracy > 0.7


@pytest.mark.slow
def test_on_real_queries_an_auditor_of_clean_text_falls_below_chance(shared_data, default_space):
    """As in the paper's table 4, and it is no sign of privacy: who knows the mechanism is right."""
    with gzip.open(shared_data / "querylog" / "pool_distinct.tsv.gz", "rt") as lines:
        queries = [line.rstrip("\n").split("\t")[1] for line in lines]
    dealt = np.random.default_rng(1).permutation(len(queries))[: 100 * 60].reshape(100, 60)
    log = UserLog(tuple(tuple(queries[i] for i in own) for own in dealt))
    cmp = sottovoce.mechanism("cmp", space=default_space, epsilon=8.5)
    report = membership(log, [cmp], members=25, min_queries=60, rng=1)
    assert outcome(report, 8.5, "clean").auc < 0.5
    assert outcome(report, 8.5, "obfuscated").auc_interval[0] > 0.8


def test_an_area_below_chance_is_explained_and_not_praised():
    sides = Sides(np.arange(100), np.arange(100, 200))
    wrong = Scores(sides, np.linspace(-2, -1, 100), np.linspace(-1.1, 0, 100))
    found = summarize(Setting("cmp:epsilon=8", 8.0, "clean"), [wrong])
    assert found.auc < 0.02
    assert found.risk == 1 - found.auc
    assert found.risk_interval[0] > 0.9
    report = MembershipReport((found,), 400, 100, 4, 1, 1, "independent", seeded=True)
    assert any("no privacy" in remark for remark in report.remarks)


def test_a_seed_gives_the_same_report_and_says_so(log, small_space):
    cmp = [sottovoce.mechanism("cmp", space=small_space, epsilon=5)]
    settings = {"members": 10, "shadows": 1, "repeats": 1, "min_queries": 20}
    one, same, other = (membership(log, cmp, rng=seed, **settings) for seed in (3, 3, 4))
    assert one == same != other
    assert one.seeded
    assert not membership(log, rng=None, **settings).seeded


def test_a_mechanism_without_an_epsilon_is_audited_and_not_drawn(log, wordnet):
    aea = [sottovoce.mechanism("aea", wordnet=wordnet)]
    few = UserLog(tuple(("skin cancer", "dog food", f"rare{u} dog") for u in range(8)))
    report = membership(few, aea, members=2, shadows=1, repeats=1, min_queries=3, rng=1)
    assert [each.setting.epsilon for each in report.outcomes] == [None] * 3
    with pytest.raises(UsageError, match="against epsilon"):
        auc_figure(report)


def test_a_weak_auditor_is_not_taken_for_privacy():
    """Users who all ask the same leave nothing to find, even in clean text."""
    log = UserLog((("weather tomorrow",) * 5,) * 40)
    report = membership(log, members=10, min_queries=5, repeats=1, rng=1)
    assert report.clean.auc == pytest.approx(0.5)
    assert any("weak" in remark for remark in report.remarks)


def test_too_few_non_members_for_one_per_cent_is_said(report):
    assert report.clean.fpr == 0
    assert any("cannot show a false positive rate of 1 %" in remark for remark in report.remarks)


def test_the_report_holds_no_text_and_is_valid_json(report, log):
    written = json.dumps(report.to_dict(), allow_nan=False)
    words = {word for own in log.queries for query in own for word in query.split()}
    assert not any(word in written for word in words)
    assert len(json.loads(written)["outcomes"]) == 7


def test_the_figure_shows_both_auditors_the_clean_text_and_chance(report):
    (plot,) = auc_figure(report).axes
    heights = {line.get_label(): line.get_ydata() for line in plot.lines}
    assert set(heights["chance"]) == {0.5}
    assert set(heights["clean text"]) == {report.clean.auc}
    assert list(heights["auditor knows the mechanism"]) == [
        outcome(report, epsilon, "obfuscated").auc for epsilon in (SMALL, MIDDLE, LARGE)
    ]


# Splits


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 9), st.integers(0, 99))
def test_target_and_shadows_share_no_user_and_members_are_no_others(members, shadows, more, seed):
    rng = np.random.default_rng(seed)
    first, *rest = draw_sides(4 * members + more, members, shadows, rng)
    target = {*first.members, *first.others}
    assert len(target) == 2 * members
    for shadow in rest:
        own = {*shadow.members, *shadow.others}
        assert len(own) == 2 * members == 2 * len(shadow.members)
        assert not own & target
    assert max(target) < 4 * members + more


# The text model


def slow_probability(training, context, word, vocabulary):
    """Witten and Bell's interpolation as it is written down, by counting."""
    grams = Counter()
    for query in training:
        padded = [None, None, *query]
        for end in range(2, len(padded)):
            for length in (1, 2, 3):
                grams[tuple(padded[end - length + 1 : end + 1])] += 1
    probability = 1 / (len(vocabulary) + 1)
    for length in (0, 1, 2):
        h = tuple(context[2 - length :])
        after = {g[-1]: c for g, c in grams.items() if len(g) == length + 1 and g[:-1] == h}
        if after:
            total, types = sum(after.values()), len(after)
            probability = (after.get(word, 0) + types * probability) / (total + types)
    return probability


QUERIES = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5), min_size=1, max_size=8)


@given(QUERIES.filter(any), QUERIES.filter(any))
def test_probabilities_and_ranks_are_those_of_counting_word_by_word(training, asked):
    numbering = Numbering()
    model = NGramModel(numbering.tokens(map(" ".join, training)))
    vocabulary = {word for query in training for word in query}
    flat = windows(numbering.tokens(map(" ".join, asked)))
    expected, ranks = [], []
    for query in asked:
        padded = [None, None, *query]
        for end in range(2, len(padded)):
            context = padded[end - 2 : end]
            own = slow_probability(training, context, padded[end], vocabulary)
            every = [slow_probability(training, context, w, vocabulary) for w in vocabulary]
            expected.append(own)
            ranks.append(1 + sum(p > own * (1 + 1e-9) for p in every))
    assert model.probabilities(flat) == pytest.approx(expected, rel=1e-12)
    assert model.ranks(flat).tolist() == ranks


@given(QUERIES.filter(any))
def test_probabilities_of_all_words_and_the_unknown_one_sum_to_one(training):
    numbering = Numbering()
    model = NGramModel(numbering.tokens(map(" ".join, training)))
    words = [*model.words, 99]
    for context in product([0, *model.words], repeat=2):
        asked = np.array([[*context, word] for word in words])
        assert model.probabilities(asked).sum() == pytest.approx(1)


def test_a_context_does_not_reach_into_the_query_before():
    tokens = Numbering().tokens(["a b", "c d e"])
    assert windows(tokens).tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 3], [0, 3, 4], [3, 4, 5]]


def test_features_are_the_shares_of_ranks_and_of_log_probabilities():
    numbering = Numbering()
    model = NGramModel(numbering.tokens(["a", "a", "a", "b"]))
    found = features(model, [numbering.tokens(["A"]), numbering.tokens(["b zz"])])
    assert found.shape == (2, RANK_BINS + 1 + LOG_BINS)
    # a is the likeliest first word and b the next; zz was never seen.
    assert np.flatnonzero(found[0, : RANK_BINS + 1]).tolist() == [0]
    assert np.flatnonzero(found[1, : RANK_BINS + 1]).tolist() == [1, RANK_BINS]
    assert found[1, 1] == 0.5
    assert found[:, RANK_BINS + 1 :].sum(axis=1) == pytest.approx(1)


# Areas and rates


def test_areas_computed_by_hand():
    assert auc([3, 2], [1, 0]) == 1
    assert auc([1, 0], [3, 2]) == 0
    assert auc([1, 1], [1, 1]) == 0.5
    assert auc([0.9, 0.4, 0.35], [0.8, 0.4]) == pytest.approx((2 + 0.5 + 0) / 6)


SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=40)


@given(SCORES, SCORES)
def test_area_and_rate_are_those_of_scikit_learn(members, others):
    labels, scores = [1] * len(members) + [0] * len(others), members + others
    assert auc(members, others) == pytest.approx(roc_auc_score(labels, scores))
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    for share in (0.01, 0.1, 0.5):
        found = np.mean(np.asarray(members) > threshold_at(others, share))
        assert found == pytest.approx(tpr[fpr <= share + 1e-9].max())


def test_an_area_below_chance_is_a_risk():
    assert either_way(0.02, 0.1) == (0.9, 0.98)
    assert either_way(0.6, 0.9) == (0.6, 0.9)
    assert either_way(0.3, 0.6) == (0.5, 0.7)


def test_a_summary_counts_hits_false_alarms_and_each_user_once():
    users = Sides(np.arange(100), np.arange(100, 200))
    others = np.linspace(-2, -1, 100)
    members = np.r_[np.full(40, 1.0), np.full(60, -3.0)]
    one = Scores(users, members, others)
    once, thrice = (summarize(Setting(None, None, "clean"), [one] * n) for n in (1, 3))
    assert once.tpr == 0.4
    assert once.fpr == 0.01
    assert once.recall == 0.4
    assert once.accuracy == pytest.approx(0.7)
    assert once.tpr_interval == pytest.approx((0.30329, 0.50279), abs=1e-4)  # by Clopper-Pearson
    assert thrice.auc_interval == pytest.approx(once.auc_interval)
    assert thrice.tpr_interval == pytest.approx(once.tpr_interval)


# Files and complaints

ROWS = (("7", "skin cancer"), ("8", "debt, advice"), ("7", "mole removal"), ("8", " "))


def write(folder, name):
    if "jsonl" in name:
        content = "".join(json.dumps({"user": u, "query": q}) + "\n" for u, q in ROWS)
    elif "tsv" in name:
        content = "AnonID\tQuery\tTime\n" + "".join(f"{u}\t{q}\t0\n" for u, q in ROWS)
    else:
        content = "user,query\n" + "".join(f'{u},"{q}"\n' for u, q in ROWS)
    data = content.encode()
    file = folder / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return file


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.tsv", "log.jsonl", "log.jsonl.gz"])
def test_all_kinds_of_files_are_read(tmp_path, name):
    log = read_user_log(write(tmp_path, name))
    assert log.queries == (("skin cancer", "mole removal"), ("debt, advice",))
    assert "skin" not in repr(log)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("user,query\n", "no query"),
        ("user,text\n1,skin cancer\n", "no column query"),
        ("id,query\n1,skin cancer\n", "no column user"),
        ("user,query\n1,skin,cancer\n", "line 2"),
        ('{"user": 1, "query": "skin cancer"}\n{"user": 1}\n', "line 2"),
        ('{"user": 1, "query": "skin cancer"}\n{skin', "line 2"),
    ],
)
def test_a_bad_log_is_refused_with_what_to_do_and_without_its_text(tmp_path, content, said):
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(UsageError, match=said) as error:
        read_user_log(tmp_path / "log.csv")
    assert "user and query" in str(error.value) or "quotes" in str(error.value)
    assert "skin" not in str(error.value)


@pytest.mark.parametrize(
    ("members", "fewest", "advice"),
    [
        (30, 20, "100 of the 100 users .* 30 members need 120 users .* set --members 25"),
        (25, 21, "0 of the 100 users .* set --min-queries 20"),
        (100, 150, "0 of the 100 users .* set --members 25 --min-queries 20"),
        (1, 20, "at least 2 members"),
        (25, 600, "--min-queries is no more than --max-queries"),
    ],
)
def test_too_few_users_or_queries_says_how_many_there_are_and_what_to_set(
    log, members, fewest, advice
):
    with pytest.raises(UsageError, match=advice):
        membership(log, members=members, min_queries=fewest)


# The command


@pytest.fixture(scope="module")
def file(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    rows = ((user, query) for user, own in enumerate(log.queries) for query in own)
    path.write_text("".join(json.dumps({"user": u, "query": q}) + "\n" for u, q in rows))
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["membership", *map(str, arguments)])


SIZE = ("--members", 10, "--min-queries", 20, "--shadows", 2, "--repeats", 1, "--seed", 1)


def test_the_command_prints_a_table_json_and_a_figure(file, small_space, tmp_path, monkeypatch):
    monkeypatch.setattr("sottovoce.resources.local.load_space", lambda name: small_space)
    mechanism = ("-m", "cmp", "-e", "1,5", "-e", 50)
    shown = run(file, *SIZE, *mechanism, "--figure", tmp_path / "auc.svg")
    assert shown.exit_code == 0, shown.output
    assert "clean text" in shown.output
    assert "cmp:epsilon=5" in shown.output
    assert "seeded" in shown.output
    assert (tmp_path / "auc.svg").read_text().startswith("<?xml")
    told = json.loads(run(file, *SIZE, *mechanism, "--json").stdout)
    assert [each["epsilon"] for each in told["outcomes"]] == [None, 1, 1, 5, 5, 50, 50]
    assert told["seeded"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-e", "5"), "-m cmp"),
        (("-m", "cmp", "-e", "secret"), "is a number"),
        (("-m", "cmp", "-e", "0"), "epsilon"),
        (("-m", "nonsense", "-e", "5"), "unknown mechanism"),
        (("--figure", "auc.svg"), "give -m and -e"),
        (("-m", "cmp", "--figure", "auc.pdf"), ".svg"),
        (("--shadows", "0"), "at least one shadow"),
        (("--members", "1000"), "--members"),
        (("--seed", "-1"), "whole number"),
    ],
)
def test_wrong_use_is_explained(file, small_space, monkeypatch, arguments, said):
    monkeypatch.setattr("sottovoce.resources.local.load_space", lambda name: small_space)
    result = run(file, *SIZE, *arguments)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert "secret" not in str(result.exception)
