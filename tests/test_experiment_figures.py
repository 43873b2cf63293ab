"""Figures of a report: what they show is what the tables hold, and only what is there is shown."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from experiment_folder import ATTACKS, EPSILONS, UTILITY, write_folder, write_table

from sottovoce.experiments.estimates import strongest
from sottovoce.experiments.report.figures import Legend, figures
from sottovoce.experiments.report.figures.boxes import box_figures
from sottovoce.experiments.report.figures.curves import epsilon_axis
from sottovoce.experiments.report.figures.lines import utility_figures
from sottovoce.experiments.report.figures.planes import plane_figures, radar_figures
from sottovoce.experiments.report.figures.words import deniability_figures
from sottovoce.experiments.results import Place, Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.plotting import (
    COLOURS,
    heat_map,
    legend_below,
    lines,
    new_figure,
    plane,
    polar_scatter,
    radar,
    save_figure,
)

SMALL = {
    "mechanisms": ("cmp", "wbb:k=2,n=15", "wbb:k=4,n=15"),
    "epsilons": (1.0, 10.0),
    "engines": ("bm25",),
    "queries": 2,
    "seeds": (0,),
    "items": 4,
}
WHERE = Place("demo", "bm25", "light")
PRIVACY = Place("demo")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return Results(write_folder(tmp_path_factory.mktemp("experiment")))


@pytest.fixture(scope="module")
def seen():
    """What progress was told."""
    return []


@pytest.fixture(scope="module")
def drawn(results, seen):
    told = figures(results, progress=lambda done, total: seen.append((done, total)))
    return {each.name: each for each in told}


def plots(figured):
    return figured.figure.axes


def line(plot, name):
    """The points of the line that the legend calls so."""
    (found,) = (each for each in plot.lines if each.get_label() == name)
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def mean_of(results, measure, setting, place):
    return np.mean(list(results.values(measure, place)[setting].values()))


def setting(mechanism, epsilon):
    return Setting(mechanism, epsilon, "independent", 20)


def test_utility_over_epsilon_shows_the_means_of_the_table_and_the_query_itself(results, drawn):
    for measure, name in (("nDCG@10", "ndcg-10"), ("pooled recall(rel=1)", "pooled-recall-rel-1")):
        plot, other = plots(drawn[f"utility-{name}-demo-light"])
        assert (plot.get_title(), other.get_title()) == ("bm25", "dense:light")
        for mechanism in ("cmp", "santext", "wbb:k=4,n=15"):
            at, values = line(plot, mechanism)
            assert tuple(at) == EPSILONS
            for epsilon, value in zip(EPSILONS, values, strict=True):
                there = mean_of(results, measure, setting(mechanism, epsilon), WHERE)
                assert value == pytest.approx(there)
        (itself,) = results.values(measure, WHERE, NO_PRIVACY).values()
        assert line(plot, "no privacy")[1] == pytest.approx([np.mean(list(itself.values()))] * 2)
        level = line(plot, "aea (no epsilon)")[1]
        assert level == pytest.approx([mean_of(results, measure, setting("aea", None), WHERE)] * 2)


def test_a_band_holds_its_line_and_is_as_wide_as_the_queries_differ(results, drawn):
    plot = plots(drawn["utility-ndcg-10-demo-light"])[0]
    _, values = line(plot, "cmp")
    corners = plot.collections[0].get_paths()[0].vertices
    for epsilon, value in zip(EPSILONS, values, strict=True):
        ends = corners[corners[:, 0] == epsilon, 1]
        assert ends.min() < value < ends.max()
        by_query = results.values("nDCG@10", WHERE)[setting("cmp", epsilon)]
        error = np.std(list(by_query.values())) / np.sqrt(len(by_query))
        assert 2.5 * error < ends.max() - ends.min() < 5 * error


def test_planes_pair_the_risk_with_the_utility_of_the_same_setting(results, drawn):
    planes = plots(drawn["plane-demo-bm25-light"])
    assert [plot.get_title().split(",")[0] for plot in planes] == ["lazy", "active", "motivated"]
    for plot, attacker in zip(planes, ("lazy", "active", "motivated"), strict=True):
        for mechanism in ("cmp", "vickrey-cmp"):
            risks, utilities = line(plot, mechanism)
            for number, epsilon in enumerate(EPSILONS):
                at = setting(mechanism, epsilon)
                risk = mean_of(results, f"{attacker}[light]", at, PRIVACY)
                assert risks[number] == pytest.approx(risk)
                assert utilities[number] == pytest.approx(mean_of(results, "nDCG@10", at, WHERE))
        assert {"1", "15"} <= {text.get_text() for text in plot.texts}


def test_the_plane_of_the_strongest_attack_takes_the_best_one_at_each_point(results, drawn):
    (plot,) = plots(drawn["plane-strongest-demo-bm25-light"])
    risks, _ = line(plot, "santext")
    attacks = strongest(results, "demo")
    for risk, epsilon in zip(risks, EPSILONS, strict=True):
        at = setting("santext", epsilon)
        tried = [*(f"words[{attack}]" for attack in ATTACKS), "lazy[light]"]
        assert risk == pytest.approx(attacks[at].mean)
        assert risk == pytest.approx(max(mean_of(results, m, at, PRIVACY) for m in tried))


def test_radars_show_recall_ndcg_and_one_minus_similarity(results, drawn):
    plot = plots(drawn["radar-demo-bm25-light"])[0]
    assert plot.get_title() == "cmp"
    for epsilon in EPSILONS:
        at = setting("cmp", epsilon)
        recall, gain, obfuscation, again = line(plot, f"epsilon {epsilon:g}")[1]
        assert recall == again
        assert recall == pytest.approx(mean_of(results, "pooled recall(rel=1)", at, WHERE))
        assert gain == pytest.approx(mean_of(results, "nDCG@10", at, WHERE))
        similar = mean_of(results, "semantic", at, PRIVACY)
        assert obfuscation == pytest.approx(1 - similar)


def test_heat_maps_put_each_box_in_its_cell(tmp_path):
    boxes = [f"wbb:k={k},n={n}" for k in (2, 8) for n in (5, 20, 50)]
    folder = write_folder(tmp_path, mechanisms=[*boxes, "cmp"], epsilons=(10.0,), engines=("bm25",))
    results = Results(folder)
    drawn = {each.name: each for each in figures(results)}
    (plot,) = plots(drawn["boxes-ndcg-10-demo-bm25-light"])
    cells = plot.collections[0].get_array()
    assert [each.get_text() for each in plot.get_yticklabels()] == ["2", "8"]
    assert [each.get_text() for each in plot.get_xticklabels()] == ["5", "20", "50"]
    for row, k in enumerate((2, 8)):
        for column, n in enumerate((5, 20, 50)):
            there = mean_of(results, "nDCG@10", setting(f"wbb:k={k},n={n}", 10.0), WHERE)
            assert cells[row, column] == pytest.approx(there)
            assert f"{there:.2f}" in {text.get_text() for text in plot.texts}
    # So many boxes are no lines: one of them, and the others are said to be elsewhere.
    shown = drawn["utility-ndcg-10-demo-light"]
    names = {each.get_label() for each in plots(shown)[0].lines}
    assert names & set(boxes) == {boxes[0]}
    assert "5 more settings of k and n are left to heat maps" in shown.caption


def test_heat_maps_know_boxes_by_their_spec_when_they_have_another_name(tmp_path):
    systems = [
        {"label": "small", "spec": "wbb:k=2,n=5"},
        {"label": "large", "spec": "wbb:k=2,n=20,measure=product"},
    ]
    folder = write_folder(
        tmp_path, **SMALL | {"mechanisms": ["small", "large"], "experiment": {"systems": systems}}
    )
    drawn = {each.name: each for each in figures(Results(folder))}
    titles = {plot.get_title() for plot in plots(drawn["boxes-semantic-demo"])}
    assert {"angle, epsilon 1", "product, epsilon 10"} <= titles


def test_deniability_shows_means_and_the_worst_words(results, drawn):
    table = results.words.to_pylist()

    def values(measure, epsilon):
        return [
            row["value"]
            for row in table
            if (row["mechanism"], row["epsilon"], row["measure"]) == ("cmp", epsilon, measure)
        ]

    panels = plots(drawn["deniability-made-up-space"])
    gathered = [("N_w", np.mean), ("S_w", np.mean), ("N_w", np.max), ("S_w", np.min)]
    for plot, (measure, how) in zip(panels, gathered, strict=True):
        at, shown = line(plot, "cmp")
        assert tuple(at) == EPSILONS
        assert shown == pytest.approx([how(values(measure, epsilon)) for epsilon in EPSILONS])


def test_histograms_count_every_word_once(results, drawn):
    plot = plots(drawn["histograms-n-w-made-up-space"])[0]
    assert plot.get_title() == "cmp"
    heights = [patch.get_data() for patch in plot.patches]
    assert len(heights) == len(EPSILONS)
    counts = [each.values - each.baseline for each in heights]
    # All have the same scale: the share of words, times a factor.
    totals = [each.sum() for each in counts]
    assert totals == pytest.approx([totals[0]] * len(EPSILONS))
    bars = [each for each in plot.lines if len(each.get_xdata()) == 2]
    means = [
        np.mean(
            [
                row["value"]
                for row in results.words.to_pylist()
                if (row["mechanism"], row["epsilon"], row["measure"]) == ("cmp", epsilon, "N_w")
            ]
        )
        for epsilon in EPSILONS
    ]
    assert [bar.get_xdata()[0] for bar in bars] == pytest.approx(means)


def test_neighbours_are_percentiles_over_words(results, drawn):
    (plot,) = plots(drawn["neighbours"])
    at, values = line(plot, "80 %")
    assert list(at) == [1, 10, 100, 1000]
    for rank, value in zip(at, values, strict=True):
        there = [
            row["value"]
            for row in results.words.to_pylist()
            if row["measure"] == f"distance to neighbour {rank:g}"
        ]
        assert value == pytest.approx(np.percentile(there, 80))


def test_relatives_lie_at_their_distance_and_angle(results, drawn):
    (plot,) = plots(drawn["relatives-cancer-made-up-space"])
    rows = [row for row in results.words.to_pylist() if row["mechanism"] == "synonym of cancer"]
    across, up = line(plot, "synonyms")
    assert sorted(np.hypot(across, up)) == pytest.approx(
        sorted(row["value"] for row in rows if row["measure"] == "distance")
    )
    assert sorted(np.degrees(np.arctan2(up, across))) == pytest.approx(
        sorted(row["value"] for row in rows if row["measure"] == "angle")
    )


def test_tasks_show_the_mean_over_seeds_of_the_mean_over_items(results, drawn):
    panels = plots(drawn["task-accuracy-sentiment"])
    assert [plot.get_title().split(": ")[1] for plot in panels] == [
        "only train obfuscated",
        "only test obfuscated",
        "both obfuscated",
    ]
    table = results.tasks.to_pylist()
    for plot, regime in zip(panels, ("only train", "only test", "both"), strict=True):
        _, values = line(plot, "cmp")
        for value, epsilon in zip(values, EPSILONS, strict=True):
            where = ("cmp", epsilon, regime)
            there = [
                row["value"]
                for row in table
                if (row["mechanism"], row["epsilon"], row["obfuscated"]) == where
            ]
            assert value == pytest.approx(np.mean(there))
        for name, model in (("clean", "tfidf"), ("majority", "majority")):
            clean = [
                row["value"]
                for row in table
                if (row["model"], row["obfuscated"]) == (model, "nothing")
            ]
            assert line(plot, name)[1] == pytest.approx([np.mean(clean)] * 2)


def test_leaks_show_every_attack_and_every_similarity(results, drawn):
    for name, measures in (
        ("recovered-demo", [f"words[{attack}]" for attack in ATTACKS]),
        ("similarity-demo", ["jaccard", "semantic"]),
    ):
        for plot, measure in zip(plots(drawn[name]), measures, strict=True):
            assert plot.get_title() in measure
            _, values = line(plot, "vickrey-cmp")
            for value, epsilon in zip(values, EPSILONS, strict=True):
                at = setting("vickrey-cmp", epsilon)
                assert value == pytest.approx(mean_of(results, measure, at, PRIVACY))


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"attacks": (), "encoders": ()}, ("plane", "recovered")),
        ({"engines": ()}, ("utility", "plane", "radar", "boxes-ndcg")),
        ({"similarity": ("jaccard",)}, ("radar", "boxes-semantic")),
        ({"words": 0, "plotted": ()}, ("deniability", "histograms", "neighbours", "relatives")),
        ({"tasks": ()}, ("task",)),
        ({"mechanisms": ("cmp", "wbb")}, ("boxes",)),
        ({"mechanisms": ("aea",)}, ("utility", "recovered", "similarity", "deniability", "task")),
        ({"utility": ("P@10",)}, ("radar", "utility-ndcg")),
    ],
)
def test_what_was_not_measured_is_not_drawn(tmp_path, changes, absent):
    folder = write_folder(tmp_path, **SMALL | changes)
    names = {each.name for each in figures(Results(folder))}
    assert names
    assert not [name for name in names if name.startswith(absent)]


def test_an_empty_experiment_has_no_figures(tmp_path):
    folder = write_folder(tmp_path)
    for kind in ("queries", "words", "tasks"):
        write_table(folder, kind, [])
    assert list(figures(Results(folder))) == []


def test_planes_take_the_first_measure_where_there_is_no_ndcg(tmp_path):
    folder = write_folder(tmp_path, **SMALL | {"utility": ("P@10",)})
    drawn = {each.name: each for each in figures(Results(folder))}
    assert plots(drawn["plane-demo-bm25-light"])[0].get_ylabel() == "P@10"


def test_a_mechanism_looks_the_same_in_all_figures_of_a_report(results, drawn):
    looks = {}
    for figured in drawn.values():
        for plot in plots(figured):
            for each in plot.lines:
                name = each.get_label().removesuffix(" (no epsilon)")
                if name in Legend.of(results).mechanisms:
                    looks.setdefault(name, set()).add((each.get_color(), each.get_marker()))
    assert all(len(found) == 1 for found in looks.values())
    assert len(set.union(*looks.values())) == len(Legend.of(results).mechanisms)


def test_releases_and_n_are_told_apart_where_they_differ(tmp_path):
    folder = write_folder(
        tmp_path, mechanisms=("cmp",), releases=("independent", "once"), n=(5, 20), queries=3
    )
    drawn = {each.name: each for each in figures(Results(folder))}
    shown = [
        each
        for each in plots(drawn["utility-ndcg-10-demo-light"])[0].lines
        if each.get_label().startswith("cmp")
    ]
    assert {each.get_label() for each in shown} == {
        f"cmp, {release}, n={n}" for release in ("independent", "once") for n in (5, 20)
    }
    assert {each.get_color() for each in shown} == {COLOURS[0]}
    assert len({(each.get_linestyle(), each.get_markerfacecolor()) for each in shown}) == 4


def test_the_same_results_give_the_same_files_with_text_as_text(tmp_path):
    results = Results(write_folder(tmp_path / "experiment", **SMALL))
    wanted = ("plane-strongest-demo-bm25-light", "radar-demo-bm25-light", "boxes-semantic-demo")
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        for kind in (plane_figures, radar_figures, box_figures):
            for figured in kind(results, Legend.of(results)):
                if figured.name in wanted:
                    save_figure(figured.figure, tmp_path / folder / f"{figured.name}.svg")
                    save_figure(figured.figure, tmp_path / folder / f"{figured.name}.png")
    assert len(list((tmp_path / "first").iterdir())) == 2 * len(wanted)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
    drawing = (tmp_path / "first" / f"{wanted[0]}.svg").read_text(encoding="utf-8")
    assert ">wbb:k=4,n=15</text>" in drawing
    assert set(re.findall(r"font-family: ([^;\"]*)", drawing)) == {
        "'DejaVu Sans', 'Verdana', 'Arial', sans-serif"
    }


def test_ten_mechanisms_at_ten_epsilons_are_drawn_without_overlapping_labels(tmp_path):
    mechanisms = [f"mechanism-{number}" for number in range(10)]
    epsilons = (1, 5, 10, 12.5, 15, 17.5, 20, 25, 30, 50)
    folder = write_folder(
        tmp_path / "experiment", mechanisms=mechanisms, epsilons=epsilons, queries=4, seeds=(0,)
    )
    results = Results(folder)
    kinds = (utility_figures, plane_figures, deniability_figures)
    drawn = [figured for kind in kinds for figured in kind(results, Legend.of(results))]
    for figured in drawn:
        if figured.name.startswith(("utility-ndcg", "plane-demo-bm25", "histograms-n")):
            path = save_figure(figured.figure, tmp_path / f"{figured.name}.png")
            assert path.stat().st_size > 10_000
        if figured.name.startswith("utility-ndcg"):
            (legend,) = figured.figure.legends
            assert len(legend.get_texts()) == 11
            plot = plots(figured)[0]
            below = legend.get_window_extent().y1
            assert below < plot.get_window_extent().y0
            boxes = [each.get_window_extent() for each in plot.get_xticklabels()]
            for one, next_one in pairwise(boxes):
                assert one.x1 < next_one.x0 or next_one.x1 < one.x0


def test_every_figure_says_what_it_shows_and_of_how_many(drawn):
    for name, figured in drawn.items():
        assert re.fullmatch(r"[a-z0-9.-]+", name)
        assert figured.title
        assert re.search(r"\d+ (queries|words|test items|other words|synonyms)", figured.caption)
        assert len(figured.alt) > 20
        assert "nan" not in figured.alt


def test_figures_of_two_collections_in_folders_have_their_own_names_and_no_paths(tmp_path):
    collections = ("/home/somebody/one/pool", "/home/somebody/two/pool")
    folder = write_folder(tmp_path, **SMALL, collections=collections)
    found = list(figures(Results(folder)))
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    assert "plane-pool-bm25-light-2" in names
    said = " ".join(each.title + each.caption + each.alt for each in found)
    assert "somebody" not in said


def test_progress_counts_to_its_end(drawn, seen):
    assert len(seen) > 1
    assert seen == [(number + 1, len(seen)) for number in range(len(seen))]


def test_utility_measures_keep_to_their_table(drawn):
    shown = [name for name in drawn if name.startswith("utility")]
    assert len(shown) == len(UTILITY)


@pytest.mark.parametrize("epsilons", [[0.001, 0.5, 100.0], [10.0], [1.0, 1.1, 1.2, 50.0]])
def test_an_axis_of_any_epsilons_names_its_ends(epsilons):
    _, (plot,) = new_figure()
    lines(plot, {"cmp": (epsilons, epsilons)})
    epsilon_axis(plot, epsilons)
    labels = [each.get_text() for each in plot.get_xticklabels()]
    assert {f"{epsilons[0]:g}", f"{epsilons[-1]:g}"} <= set(labels)
    assert (plot.get_xscale() == "log") is (epsilons[-1] / epsilons[0] > 60)


def test_a_heat_map_leaves_out_what_is_not_a_number(tmp_path):
    figure, (plot,) = new_figure()
    heat_map(plot, [[0.1, np.nan], [0.9, 0.5]], rows="ab", columns="cd", low=0, high=1)
    assert sorted(text.get_text() for text in plot.texts) == ["0.10", "0.50", "0.90"]
    light = {text.get_text(): text.get_color() for text in plot.texts}
    assert (light["0.10"], light["0.90"]) == ("white", "black")
    save_figure(figure, tmp_path / "map.svg")


def test_round_plots_take_any_names_and_no_points(tmp_path):
    figure, (plot,) = new_figure(polar=True)
    radar(plot, ["$a$", "_b", "c"], {"_x": [0, 0.5, 1], "$y$": [1, 1, 1]})
    save_figure(figure, tmp_path / "radar.svg")
    figure, (plot,) = new_figure()
    polar_scatter(plot, {"none": ([], []), "one": ([2.0], [180.0])})
    across, up = line(plot, "one")
    assert (across[0], up[0]) == pytest.approx((-2, 0))
    save_figure(figure, tmp_path / "polar.svg")


def test_ends_of_paths_are_written_where_there_is_room():
    _, (plot,) = new_figure()
    path = ([0.1, 0.9], [0.2, 0.6])
    plane(plot, {"a": path, "b": path}, ends={"a": ("1", "50"), "b": ("2", "60")})
    assert [text.get_text() for text in plot.texts if text.get_text()] == ["1", "50"]


def test_longer_ends_of_paths_need_more_room():
    def written(*ends):
        _, (plot,) = new_figure(width=3.4, height=3.5)
        plane(plot, {"a": ([0.5, 0.6], [0.6, 0.6])}, ends={"a": ends})
        return [text.get_text() for text in plot.texts if text.get_text()]

    assert written("20", "10") == ["20", "10"]
    assert written("k=20", "k=10") == ["k=20"]


def test_a_legend_below_names_what_any_plot_shows_once():
    figure, (first, second) = new_figure(1, 2)
    lines(first, {"a": ([0, 1], [0, 1]), "b": ([0, 1], [1, 0])}, legend=False)
    lines(second, {"b": ([0, 1], [0, 1]), "c": ([0, 1], [1, 0])}, legend=False)
    legend_below(figure, [first, second])
    assert [each.get_text() for each in figure.legends[0].get_texts()] == ["a", "b", "c"]
    assert first.get_legend() is None


def test_titles_of_radars_are_inside_the_figure(tmp_path):
    figure, plots = new_figure(1, 2, width=2.5, height=2.5, polar=True)
    for plot in plots:
        radar(plot, ["recall", "nDCG", "obf."], {"one": [1, 1, 1]}, title="cover")
    legend_below(figure, plots)
    save_figure(figure, tmp_path / "radar.png")
    for plot in plots:
        assert plot.title.get_window_extent().y1 <= figure.bbox.y1


def test_heat_maps_show_the_epsilon_at_which_the_grid_was_run():
    from sottovoce.experiments.report.figures.boxes import _fullest, _largest
    from sottovoce.experiments.report.figures.curves import Box

    whole = {(Box(k, n, "angle", ()), 10.0): 0.1 * k for k in (2, 4) for n in (5, 10)}
    few = {(Box(2, 5, "angle", ()), epsilon): 0.9 for epsilon in (1.0, 5.0, 50.0)}
    assert _fullest({**few, **whole}) == [10.0]
    assert _largest(whole)[0] == "with k=4 and n=5 (angle, epsilon 10)"
