"""A real experiment on the demo collection: its manifest, and what the app is told of it."""

from __future__ import annotations

import json
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("ir_measures", reason="pip install 'sottovoce[experiments]'")

from sottovoce.collections import load_collection
from sottovoce.engines import choose_engine
from sottovoce.errors import UsageError
from sottovoce.evaluation.search_quality import Measured
from sottovoce.experiments.fingerprints import digest
from sottovoce.experiments.results import SETTING, Place, Results, Setting
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.experiments.summary import last_summary, remember, summarize
from sottovoce.mechanisms import parse
from sottovoce.paths import experiments_folder
from sottovoce.pools import load_pool
from sottovoce.statistics import clopper_pearson

DEPTH = 100
FILE = """
name = "small"
description = "A small one."
notes = ["none"]
[grid]
collections = ["demo"]
engines = ["bm25"]
rerankers = ["light", "none"]
epsilons = [5, 12.5]
releases = ["once"]
n = [3]
[[mechanism]]
spec = "vickrey-cmp:t=0.75"
label = "V"
[privacy]
similarity = []
log = "{log}"
attacks = ["mode"]
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where the app's figures go in this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return experiments_folder()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    log = folder / "queries of people.txt"
    log.write_text("skin cancer\nhow to divorce\nweather in rome\n")
    (folder / "small.toml").write_text(FILE.replace("{log}", str(log)))
    return folder / "small.toml"


@pytest.fixture(scope="module")
def results(file, tmp_path_factory, default_space):
    folder = tmp_path_factory.mktemp("out") / "small"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
        outcome = run_experiment(read_experiment(file), folder, file=file)
        assert last_summary(demo().fingerprint, "bm25", "light", DEPTH) is not None
    assert (outcome.cells, outcome.done_before, outcome.folder) == (12, 0, folder)
    return Results(folder)


def test_the_manifest_says_what_it_was_made_of(results, file):
    said = results.manifest
    assert (said["name"], said["description"], said["notes"]) == ("small", "A small one.", ["none"])
    assert said["seeded"]
    assert "nothing here protects anybody" in said["warning"]
    assert {"sottovoce", "python", "numpy", "scipy", "pyarrow", "ir_measures"} <= set(
        said["versions"]
    )
    assert said["facts"]["collection"][0]["documents"] == demo().fingerprint
    assert said["facts"]["log"][0]["name"] == "queries of people.txt"
    assert set(said["facts"]["encoders"][0]) == {"light"}
    assert set(said["seconds_by_kind"]) == {"draw", "baseline", "search", "leak"}
    assert said["seconds"] == pytest.approx(sum(said["seconds_by_kind"].values()), abs=0.01)
    assert said["experiment"]["privacy"]["log"] == "queries of people.txt"
    content = (results.folder / "manifest.json").read_text()
    assert str(file.parent) not in content
    assert str(Path.home()) + "/" not in content
    assert (results.folder / "experiment.toml").read_bytes() == file.read_bytes()


def test_a_further_epsilon_in_the_file_runs_only_its_own_cells(results, file, home, tmp_path):
    """And while it runs, the old tables still belong to the old manifest."""
    folder, more = tmp_path / "copy", tmp_path / "more.toml"
    shutil.copytree(results.folder, folder)
    more.write_text(file.read_text().replace("[5, 12.5]", "[5, 12.5, 20]"))
    seen = []

    def progress(done, total):
        seen.append((done, total))
        assert Results(folder).manifest["cells"] == 12

    before = (folder / "results.csv").read_bytes()
    outcome = run_experiment(read_experiment(more), folder, file=more, progress=progress)
    assert (outcome.cells, outcome.done_before) == (17, 12)
    assert seen == [(done, 17) for done in range(12, 18)]
    assert {*Results(folder).queries["epsilon"].to_pylist()} == {None, 5.0, 12.5, 20.0}
    assert "20" in (folder / "experiment.toml").read_text()
    again = run_experiment(read_experiment(file), folder, file=file)
    assert (again.cells, again.done_before) == (12, 12)
    assert (folder / "results.csv").read_bytes() == before


def demo():
    return choose_engine("bm25", load_collection("demo").documents)


def test_the_app_finds_the_figures_of_its_own_collection(results, home):
    remember(summarize(results))
    found = last_summary(demo().fingerprint, "bm25", "light", DEPTH)
    assert found == next(each for each in summarize(results) if each["reranker"] == "light")
    assert (found["collection"], found["queries"], found["log"]) == ("demo", 65, 3)
    assert found["log_sha256"] == digest(["skin cancer", "how to divorce", "weather in rome"])
    assert found["made"] == results.manifest["finished"]
    for where in (
        ("0" * 64, "bm25", "light", DEPTH),
        (demo().fingerprint, "dense:light", "light", DEPTH),
    ):
        assert last_summary(*where) is None
    others = demo().fingerprint[:16] + "0" * 48
    assert last_summary(others, "bm25", "light", DEPTH) is None
    (kept,) = home.glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_figures_are_those_of_the_tables(results):
    (light, none) = summarize(results)
    place, privacy = Place("demo", "bm25", "light"), Place("demo")
    setting = Setting("V", 12.5, "once", 3)
    told = light["settings"][1]
    assert parse(told["spec"]) == parse("vickrey-cmp:t=0.75,epsilon=12.5")
    assert told["texts"]["space"] is None
    assert tuple(told[name] for name in SETTING) == setting[:4]
    values = Measured("nDCG@10", results.values("nDCG@10", place)[setting])
    assert told["nDCG@10"]["value"] == pytest.approx(values.mean)
    low, high = values.interval()
    assert told["nDCG@10"]["low"] == pytest.approx(low, abs=0.01)
    assert told["nDCG@10"]["high"] == pytest.approx(high, abs=0.01)
    deep = results.values("nDCG@10", place, "same depth")[setting]
    assert told["same_depth"]["value"] == pytest.approx(sum(deep.values()) / 65)
    recall = results.values("pooled recall(rel=1)", place)[setting]
    assert told["recall"]["value"] == pytest.approx(sum(recall.values()) / 65)
    lazy = results.values("lazy[light]", privacy)[setting]
    low, high = clopper_pearson(sum(lazy.values()), 65)
    assert told["lazy"]["by"] == "light"
    assert told["lazy"]["low"] == pytest.approx(float(low))
    assert told["lazy"]["high"] == pytest.approx(float(high))
    words = results.values("words[mode]", privacy)[setting]
    assert told["words"]["value"] == pytest.approx(sum(words.values()) / len(words))
    assert told["words"]["by"] == "mode"
    assert told["words"]["knows"] == "the variants alone, not what made them"
    assert "a log of 68 queries with the true one in it" in told["lazy"]["knows"]
    assert [told[name]["queries"] for name in ("nDCG@10", "lazy")] == [65, 65]
    assert told["words"]["queries"] == len(words)
    base = results.values("nDCG@10", place, "no privacy")
    assert light["baseline"]["nDCG@10"] == pytest.approx(
        sum(sum(each.values()) for each in base.values()) / 65
    )
    assert none["settings"][1]["nDCG@10"] != told["nDCG@10"]
    assert none["settings"][1]["lazy"] == told["lazy"]


def test_each_figure_says_on_how_many_queries_it_was_measured(results, monkeypatch):
    """Words may be attacked on fewer queries than were searched."""
    whole = results.grid

    def fewer(measure, *where):
        grid = whole(measure, *where)
        if measure.kind == "words":
            grid.values[0, 8:] = np.nan
        return grid

    monkeypatch.setattr(results, "grid", fewer)
    first, second = summarize(results)[0]["settings"]
    assert (first["words"]["queries"], first["lazy"]["queries"]) == (8, 65)
    assert second["words"]["queries"] > 8


def test_what_was_not_measured_is_none(results, tmp_path, home, default_space):
    experiment = read_experiment(results.folder / "experiment.toml")
    privacy = replace(experiment.privacy, log=None, attacks=())
    utility = replace(experiment.utility, measures=("P@10",))
    folder = tmp_path / "out"
    run_experiment(replace(experiment, privacy=privacy, utility=utility), folder)
    for found in summarize(Results(folder)):
        assert found["log"] is None
        assert found["log_sha256"] is None
        assert found["baseline"]["nDCG@10"] is None
        for setting in found["settings"]:
            assert [setting[name] for name in ("lazy", "words", "nDCG@10")] == [None] * 3
            assert setting["recall"] is not None


def test_a_setting_that_draws_from_a_pool_says_from_which(tmp_path):
    """By its content: that of another folder may have the same name."""
    pools = [tmp_path / name / "public.txt" for name in ("one", "other")]
    for number, pool in enumerate(pools):
        pool.parent.mkdir()
        pool.write_text("\n".join(f"public query {number} {line}" for line in range(40)))
    content = COMPANY.replace("{pool}", str(pools[0]))
    found = summarized(content, tmp_path / "first")
    assert found["light"] == load_pool(pools[0], "light").sha256
    assert found["demo"] == load_pool("demo", "light").sha256
    assert found["words"] is None
    same_name = content.replace('"demo" # pool', f'"{pools[1]}"')
    assert summarized(same_name, tmp_path / "second") == dict.fromkeys(found)


COMPANY = """
name = "company"
[grid]
collections = ["demo"]
engines = ["bm25"]
rerankers = ["none"]
n = [3]
[[mechanism]]
spec = "cover:k=3"
label = "light"
pool = "{pool}"
encoder = "light"
[[mechanism]]
spec = "cover:k=3"
label = "demo"
pool = "demo" # pool
encoder = "light"
[[mechanism]]
spec = "santext"
label = "words"
epsilons = [1]
[privacy]
similarity = []
attacks = []
"""


def summarized(content, folder):
    """What the summary of an experiment says of the pool of each of its mechanisms."""
    folder.mkdir()
    file = folder / "company.toml"
    file.write_text(content)
    run_experiment(read_experiment(file), folder / "out", file=file)
    (summary,) = summarize(Results(folder / "out"))
    return {setting["mechanism"]: setting["pool_sha256"] for setting in summary["settings"]}


def test_the_last_experiment_wins_and_others_stay(results, home):
    light, none = summarize(results)
    remember([light, none])
    remember([{**light, "made": "later"}, {**light, "made": "deeper", "depth": 1000}])
    assert last_summary(light["fingerprint"], "bm25", "light", 1000)["made"] == "deeper"
    assert last_summary(light["fingerprint"], "bm25", "light", DEPTH)["made"] == "later"
    assert last_summary(light["fingerprint"], "bm25", "none", DEPTH)["made"] == none["made"]
    (kept,) = home.glob("*.json")
    kept.write_text(json.dumps([light])[:50])
    assert last_summary(light["fingerprint"], "bm25", "light", DEPTH) is None
    for earlier in ({k: light[k] for k in light if k != "layout"}, {**light, "layout": 1}):
        kept.write_text(json.dumps([earlier]))
        assert last_summary(light["fingerprint"], "bm25", "light", DEPTH) is None
    remember([light])
    assert last_summary(light["fingerprint"], "bm25", "light", DEPTH) == light


def test_wrong_calls_are_refused_before_anything_is_written(results, tmp_path):
    experiment = read_experiment(results.folder / "experiment.toml")
    for options in ({"workers": 0}, {"on": "moon"}, {"scheduler": "tcp://127.0.0.1:1"}):
        with pytest.raises(UsageError):
            run_experiment(experiment, tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()
