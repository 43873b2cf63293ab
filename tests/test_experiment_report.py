"""The report's tables: their numbers are those of the experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiment_folder import write_folder, write_table
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.experiments.estimates import quipu_scores, shares, strongest
from sottovoce.experiments.report.risk_tables import front
from sottovoce.experiments.report.table import Number, Table
from sottovoce.experiments.report.write import sections
from sottovoce.experiments.results import Place, Results, Setting, curves
from sottovoce.privacy.quipu_score import quipu
from sottovoce.statistics import mean_over_seeds

PLACE = Place("demo", "bm25", "light")
PRIVACY = Place("demo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return Results(folder)


@pytest.fixture(scope="module")
def tables(results: Results) -> dict[str, Table]:
    return {table.name: table for section in sections(results) for table in section.tables}


def row_of(table: Table, *labels: str) -> dict[str, Number]:
    """The cells of the row that starts with these labels, by column."""
    (row,) = [row for row in table.rows if row[: len(labels)] == labels]
    return dict(zip(table.columns, row, strict=True))


def test_values_are_means_over_seeds_of_the_long_table(results: Results) -> None:
    by_hand: dict[tuple, list[float]] = {}
    for row in results.queries.to_pylist():
        where = (row["collection"], row["engine"], row["reranker"], row["system"], row["measure"])
        if where == ("demo", "bm25", "light", "private", "P@10"):
            setting = Setting(row["mechanism"], row["epsilon"], row["release"], row["n"])
            by_hand.setdefault((setting, row["query_id"]), []).append(row["value"])
    found = results.values("P@10", PLACE)
    assert {(s, q) for s, values in found.items() for q in values} == set(by_hand)
    for (setting, query), seeds in by_hand.items():
        assert len(seeds) == 2
        assert found[setting][query] == pytest.approx(np.mean(seeds))
    assert list(dict.fromkeys(each for each, _ in by_hand)) == list(found)
    assert results.values("P@10", Place("elsewhere")) == {}


def test_tables_hold_the_means_of_their_measure(results: Results, tables: dict[str, Table]) -> None:
    jaccard = results.values("jaccard", PRIVACY)
    cell = row_of(tables["similarity-jaccard-demo"], "cmp")["ε = 10"]
    assert cell.value == pytest.approx(
        np.mean(list(jaccard[Setting("cmp", 10.0, "independent", 20)].values()))
    )
    ndcg = results.values("nDCG@10", PLACE)
    cell = row_of(tables["ndcg-10-demo-light"], "bm25", "aea")["no ε"]
    assert cell.value == pytest.approx(
        np.mean(list(ndcg[Setting("aea", None, "independent", 20)].values()))
    )
    deeper = results.values("pooled recall(rel=1)", PLACE, "same depth")
    cell = row_of(tables["pooled-recall-rel-1-demo"], "bm25", "same depth as cmp")["ε = 5"]
    assert cell.value == pytest.approx(
        np.mean(list(deeper[Setting("cmp", 5.0, "independent", 20)].values()))
    )
    assert row_of(tables["pool-demo"], "bm25", "no privacy")["no ε"].value == 100


def test_every_table_of_numbers_says_how_many_queries_and_seeds(tables: dict[str, Table]) -> None:
    measured = [each for name, each in tables.items() if not name.startswith("manifest")]
    assert len(measured) > 20
    for table in measured:
        if not table.name.startswith(("neighbour", "deniability", "task")):
            assert "12 queries, 2 seeds" in table.caption, table.name
            assert "20 variants" in table.caption
        assert "quer" in table.caption


def test_the_best_of_each_column_is_marked_by_engine(tables: dict[str, Table]) -> None:
    table = tables["ndcg-10-demo-light"]
    place = table.columns.index("ε = 10")
    for engine in ("bm25", "dense:light"):
        cells = [
            row[place]
            for row in table.rows
            if row[0] == engine and row[place] is not None and "same depth" not in row[1]
        ]
        best = [each for each in cells if each.best]
        assert [each.value for each in best] == [max(each.value for each in cells)]
    low = row_of(table, "bm25", "cmp")["ε = 1"]
    assert "▼" in low.marks
    assert "▼" not in row_of(table, "bm25", "cmp")["ε = 15"].marks


def test_shares_of_queries_have_clopper_pearson_intervals(tables: dict[str, Table]) -> None:
    low, high = shares(np.array([[0.0] * 12, [1.0] * 6 + [0.0] * 6]))
    assert low[0] == 0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 12))
    cell = row_of(tables["query-inference-light-demo"], "cmp", "lazy: first guess")["ε = 10"]
    assert (cell.value, cell.interval) == (0.0, (0.0, pytest.approx(1 - 0.025 ** (1 / 12))))


def test_the_strongest_attack_is_the_one_with_the_greatest_mean(results: Results) -> None:
    found = strongest(results, "demo")
    measures = ("words[mode]", "words[context]", "lazy[light]")
    means = {
        measure: {
            setting: np.mean(list(values.values()))
            for setting, values in results.values(measure, PRIVACY).items()
        }
        for measure in measures
    }
    assert len({each.attack for each in found.values()}) > 1
    for setting, attack in found.items():
        most = max(means, key=lambda measure: means[measure][setting])
        assert attack.mean == pytest.approx(means[most][setting])
        assert means[attack.attack.label][setting] == pytest.approx(attack.mean)


def test_quipu_scores_are_those_of_the_points_in_order(results: Results) -> None:
    scores = quipu_scores(results, PLACE, risk="motivated[light]")
    utility = results.values("nDCG@10", PLACE)
    risk = results.values("motivated[light]", PRIVACY)
    (itself,) = results.values("nDCG@10", PLACE, "no privacy").values()
    assert "aea" not in {each.mechanism for each in scores}
    assert len(scores) == 5
    for curve, points in curves(utility).items():
        if curve not in scores:
            continue
        assert [each.epsilon for each in points] == [1, 5, 10, 15]
        expected = quipu(
            [list(risk[each].values()) for each in points],
            [list(utility[each].values()) for each in points],
            best=list(itself.values()),
        )
        assert scores[curve] == expected


def test_quipu_scores_use_queries_that_have_both(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp",), tasks=(), words=0)
    rows = [
        tuple(row.values())
        for row in Results(folder).queries.to_pylist()
        if not (row["query_id"] == "q3" and row["measure"] == "nDCG@10" and row["epsilon"] == 5)
    ]
    write_table(folder, "queries", rows)
    (score,) = quipu_scores(Results(folder), PLACE, risk="strongest").values()
    assert score.queries == 11


def test_a_curve_over_what_hides_more_the_larger_it_is_starts_with_the_largest(
    tmp_path: Path,
) -> None:
    systems = [{"spec": "cover:p=0.9", "label": "cover", "parameter": "k"}]
    folder = write_folder(
        tmp_path,
        mechanisms=("cover",),
        epsilons=(10, 20, 50),
        releases=("once",),
        tasks=(),
        words=0,
        experiment={"systems": systems},
    )
    results = Results(folder)
    (score,) = quipu_scores(results, PLACE, risk="motivated[light]").values()
    risk, utility = results.values("motivated[light]", PRIVACY), results.values("nDCG@10", PLACE)
    (itself,) = results.values("nDCG@10", PLACE, "no privacy").values()
    (points,) = curves(utility).values()
    assert [point.epsilon for point in points] == [50, 20, 10]
    assert score == quipu(
        [list(risk[point].values()) for point in points],
        [list(utility[point].values()) for point in points],
        best=list(itself.values()),
    )


def test_words_and_tasks_are_summed_up(results: Results, tables: dict[str, Table]) -> None:
    words = results.words.to_pylist()
    backs = [
        row["value"]
        for row in words
        if (row["mechanism"], row["epsilon"], row["measure"]) == ("cmp", 10.0, "N_w")
    ]
    row = row_of(tables["deniability-made-up-space"], "cmp", "10")
    assert row["N_w mean"].value == pytest.approx(np.mean(backs))
    assert row["N_w worst"].value == max(backs)
    assert row["N_w 95 %"].value == pytest.approx(np.percentile(backs, 95))
    assert row["S_w worst"].value <= row["S_w 5 %"].value
    assert [row[0] for row in tables["neighbour-distances-made-up-space"].rows] == [
        1,
        10,
        100,
        1000,
    ]
    rights = {
        seed: np.array(
            [
                row["value"]
                for row in results.tasks.to_pylist()
                if (row["mechanism"], row["epsilon"], row["obfuscated"], row["seed"])
                == ("cmp", 10.0, "both", seed)
            ]
        )
        for seed in (0, 1)
    }
    value, interval = mean_over_seeds([np.arange(40)] * 2, list(rights.values()), (0, 1))
    cell = row_of(tables["task-sentiment-accuracy"], "tfidf", "cmp", "both")["ε = 10"]
    assert (cell.value, cell.interval) == (pytest.approx(value), pytest.approx(interval))
    assert row_of(tables["task-sentiment-accuracy"], "majority")["no ε"].value < 0.6


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(points)
def test_the_front_holds_what_no_other_beats(found: list[tuple[int, int]]) -> None:
    settings = [Setting(str(number), None, "", 1) for number in range(len(found))]
    risk = {each: float(r) for each, (r, _) in zip(settings, found, strict=True)}
    utility = {each: float(u) for each, (_, u) in zip(settings, found, strict=True)}

    def beaten(one: Setting, by: Setting) -> bool:
        as_good = risk[by] <= risk[one] and utility[by] >= utility[one]
        return as_good and (risk[by], utility[by]) != (risk[one], utility[one])

    unbeaten = {each for each in settings if not any(beaten(each, other) for other in settings)}
    assert set(front(risk, utility)) == unbeaten
    assert [risk[each] for each in front(risk, utility)] == sorted(risk[each] for each in unbeaten)


def test_releases_and_n_stand_in_columns_where_they_differ(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path, mechanisms=("cmp",), releases=("once", "independent"), n=(5, 20), tasks=()
    )
    found = {each.name: each for part in sections(Results(folder)) for each in part.tables}
    table = found["similarity-jaccard-demo"]
    assert table.columns[:3] == ("mechanism", "release", "n")
    assert [row[1:3] for row in table.rows] == [
        ("once", "5"),
        ("once", "20"),
        ("independent", "5"),
        ("independent", "20"),
    ]
    assert "12 queries, 2 seeds; 95 % bootstrap" in table.caption


def test_few_queries_are_said_to_show_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp", "santext"), queries=3, tasks=(), words=0)
    found = {each.name: each for part in sections(Results(folder)) for each in part.tables}
    table = found["against-no-privacy-demo-bm25-light"]
    assert "no difference, however large, can be significant" in table.notes[-1]


def test_attacks_on_fewer_queries_are_said_to_be(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp",), encoders=(), tasks=(), words=0)
    rows = [
        tuple(row.values())
        for row in Results(folder).queries.to_pylist()
        if not row["measure"].startswith(("words[", "content[", "query["))
        or row["query_id"] in ("q1", "q2")
    ]
    write_table(folder, "queries", rows)
    found = {each.name: each for part in sections(Results(folder)) for each in part.tables}
    assert "2 queries, 2 seeds" in found["strongest-attack-demo"].caption
    assert "2 to 12 queries, 2 seeds" in found["trades-demo-bm25-light"].caption
