"""The papers' experiments: each file is read without problems, and what it expects is measured."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from plain_bert import random_weights, write_folder

from sottovoce import load_space
from sottovoce.errors import SottovoceError
from sottovoce.evaluation import read_task
from sottovoce.experiments.grid import Draw, Leak, Search, plan
from sottovoce.experiments.results import Results
from sottovoce.experiments.schema.expectations import expectations_of
from sottovoce.experiments.schema.experiment import Experiment
from sottovoce.experiments.schema.reading import read_experiment

FOLDER = Path(__file__).parents[1] / "replication"
DEMO = FOLDER.parent / "examples" / "demo-experiment.toml"
FILES = sorted(FOLDER.glob("*.toml"))
PAPERS = ("000", "001", "002", "003", "004")
ENCODER = "encoders/all-mpnet-base-v2"
EPSILONS = (1, 5, 10, 12.5, 15, 17.5, 20, 25, 30, 50)


def read(file: Path, shared_data: Path) -> Experiment:
    from sottovoce.encoders import load_encoder

    try:
        load_encoder("strong")
    except SottovoceError:
        pytest.skip("the strong encoder is not here: sottovoce spaces add strong")
    if '"bilstm"' in file.read_text() and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not here: pip install 'sottovoce[gpu]'")
    if ENCODER in file.read_text() and not (shared_data / ENCODER).is_dir():
        pytest.skip(f"{ENCODER} is not among the shared data")
    require_spaces(file)
    return read_experiment(file, shared_data)


def require_spaces(file: Path) -> None:
    """Skip what wants a word space that this machine lacks."""
    for name in ("glove-6b-100d", "glove-6b-50d"):
        if f'"{name}"' in file.read_text():
            try:
                load_space(name)
            except SottovoceError:
                pytest.skip(f"the word space '{name}' is not here: sottovoce spaces add {name}")


@pytest.fixture(scope="module")
def prepared_data(shared_data, tmp_path_factory) -> Path:
    """The data with what paper 004 needs besides; a small model stands for all-mpnet-base-v2."""
    folder = tmp_path_factory.mktemp("data")
    mpnet = write_folder(folder / "model", random_weights())
    loaded(FOLDER / "prepare.py").prepare(shared_data, folder / "new", mpnet)
    return folder / "new"


def loaded(script: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_paper_has_a_file():
    assert {file.name[:3] for file in FILES} == {*PAPERS}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_read_without_problems_and_says_where_we_differ(
    file, prepared_data, default_space
):
    experiment = read(file, prepared_data)
    assert experiment.name == file.stem
    assert len(experiment.notes) >= 5
    assert sum(map(len, plan(experiment))) >= 5
    assert experiment.expected or experiment.expected_orders
    for each in (*experiment.expected, *experiment.expected_orders):
        assert each.source, "every figure says where it is from"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_expectations_are_read_without_the_data(file):
    expected, orders = expectations_of(file)
    names = [(each.name, each.source) for each in (*expected, *orders)]
    assert len(names) == len({*names})


def test_the_grid_of_quipu_is_the_published_one(shared_data, default_space):
    experiment = read(FOLDER / "001-quipu.toml", shared_data)
    assert [system.label for system in experiment.systems] == [
        *("CMP", "Mahalanobis", "VickreyCMP", "VickreyMhl", "CusText", "SanText", "TEM", "WBB")
    ]
    assert all(system.epsilons == EPSILONS for system in experiment.systems)
    assert experiment.n == (20,)
    assert experiment.engines == ("bm25", "dense:strong")
    jobs = [job for stage in plan(experiment) for job in stage]
    assert sum(isinstance(job, Draw) for job in jobs) == 80
    assert sum(isinstance(job, Search) for job in jobs) == 2 * 80
    assert sum(isinstance(job, Leak) for job in jobs) == 4 * 80


def test_every_published_release_has_an_expected_jaccard():
    expected, _ = expectations_of(FOLDER / "001-quipu-published.toml")
    jaccard = {
        (each.where["mechanism"], each.where["epsilon"]): each.value
        for each in expected
        if each.measure == "jaccard"
    }
    assert len(jaccard) == 8 * len(EPSILONS)
    assert jaccard["WBB", 50] == 0.394, "as released, not as printed"


def test_no_figure_is_said_to_be_of_an_appendix_that_does_not_exist():
    for file in FILES:
        expected, orders = expectations_of(file)
        assert not [each.source for each in (*expected, *orders) if "appendix" in each.source]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["000-wbb-boxes", "001-quipu-published"])
def test_the_one_command_works_in_little(name, shared_data, default_space, tmp_path):
    require_spaces(FOLDER / f"{name}.toml")
    for _ in range(2):  # The second time there is nothing left to do.
        assert " OK" in one_command(name, shared_data, tmp_path)
    measured = set(Results(tmp_path / name).queries["query_id"].to_pylist())
    assert len(measured) == 3
    assert (tmp_path / name / "report" / "report.html").is_file()


def test_the_one_command_works_where_the_data_are_not(default_space, tmp_path):
    """The demo in the place of all four collections; what they are expected to show is not read."""
    pytest.importorskip("textblob")
    replicate = loaded(FOLDER.parent / "tools" / "replicate.py")
    demo = Path(replicate.small_collection("demo", tmp_path))
    for name in ("msmarco-dl19-pool", "cranfield", "nfcorpus", "npl"):
        shutil.copytree(demo, tmp_path / "ir" / name)
    told = one_command("000-collections", tmp_path, tmp_path / "results")
    if "left out" in told:
        pytest.skip(told)
    assert "s of processors" in told
    systems = Results(tmp_path / "results" / "000-collections").queries["mechanism"]
    assert {"CMP", "VkrMhl", "SanText", "WBB"} <= set(systems.to_pylist())


def one_command(name: str, data: Path, out: Path) -> str:
    """What ``tools/replicate.py`` says of a file, tried in little."""
    command = [sys.executable, "-W", "ignore", "tools/replicate.py", str(data), "--smoke"]
    command += ["--only", f"{name}.toml", "--workers", "1", "--out", str(out)]
    ended = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 or "left out" in ended.stdout, ended.stderr
    assert ended.stdout.startswith(f"{name}: ")
    assert ended.stdout.count("\n") == 1, "no other file was run"
    return ended.stdout


def test_no_tweet_is_in_two_parts(prepared_data):
    parts = [
        read_task(prepared_data / "made" / f"{name}.jsonl")
        for name in ("tweets", "learnt-tweets", "public-tweets")
    ]
    assert [len(part) for part in parts] == [1000, 4000, 9284]
    everything = read_task(prepared_data / "classification" / "tweeteval_sentiment.jsonl.gz")
    assert parts[0].texts == everything.sample(1000).texts
    assert sorted(text for part in parts for text in part.texts) == sorted(everything.texts)


def test_table_1_and_2_of_comet_are_expected_in_full():
    for name, table in (("004-comet", "queries"), ("004-comet-sentiment", "tasks")):
        expected, _ = expectations_of(FOLDER / f"{name}.toml")
        assert len(expected) == 6 * 8 * 2
        assert {figure.table for figure in expected} == {table}


def test_the_demo_experiment_needs_nothing_but_the_demo(default_space):
    experiment = read_experiment(DEMO)
    assert experiment.collections == ("demo",)
    assert experiment.privacy.log == "demo"
    assert "strong" not in repr(experiment), "make demo installs the light encoder alone"


def test_the_figures_of_the_app_are_of_its_voices_and_of_all_queries():
    content = tomllib.loads((DEMO.parent / "app-experiment.toml").read_text())
    once = next(each for each in content["mechanism"] if each["releases"] == ["once"])
    assert (once["spec"], once["epsilons"]) == ("cmp:prior=0.5", [5, 7.5, 10, 15])
    assert "attacked" not in content["privacy"]
    assert content["search"]["depth"] == 10
