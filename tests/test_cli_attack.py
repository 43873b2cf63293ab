"""``sottovoce attack``: files of releases, what is said of them, and wrong use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.cli import app
from sottovoce.errors import UsageError
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks.word_means import COMPARED
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

QUERIES = [
    "skin cancer",
    "divorce lawyer cost",
    "night bus",
    "panic attack at work",
    "rent arrears",
]
LOG = [*QUERIES, *(f"{word} prices" for word in ("bread", "milk", "bus", "school", "coal"))]


@pytest.fixture(scope="module")
def rows(everyday_words: WordSpace) -> list[str]:
    """Releases by an exact law, which takes no time to learn."""
    santext = mechanism("santext:epsilon=2", space=everyday_words)
    results = Obfuscator(santext, n=5, rng=5).obfuscate(QUERIES)
    return [json.dumps(result.to_dict()) for result in results]


@pytest.fixture
def file(tmp_path: Path, rows: list[str]) -> Path:
    path = tmp_path / "releases.jsonl"
    path.write_text("\n".join(rows))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text("\n".join(LOG))
    return path


@pytest.fixture
def run(everyday_words: WordSpace) -> Callable[..., Result]:
    """``sottovoce`` with these arguments, and a word space that is soon computed with."""

    def run(*arguments: object) -> Result:
        if "--space" not in arguments and "--pool" not in arguments:
            arguments = (*arguments, "--space", everyday_words.folder)
        runner = CliRunner(env={"COLUMNS": "240", "NO_COLOR": "1"})
        return runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)

    return run


def test_a_file_of_ours_is_attacked_with_what_it_says_of_itself(run, file, log):
    result = run("attack", file, "--log", log, "--seed", 1, "--encoder", "light", "--json")
    assert result.exit_code == 0, result.exception
    report = json.loads(result.stdout)
    assert report["mechanism"] == "santext:epsilon=2"
    assert report["seeded"]
    tried = {recovery["attack"] for recovery in report["recoveries"]}
    assert tried == {"mode", "uniform", "prior", "context"}
    named = {inference["by"] for inference in report["inferences"]}
    assert named == {"aligned", "light", *COMPARED}
    assert report["not_tried"] == {}
    assert "lawyer" not in result.stdout


def test_the_two_readings_stand_at_the_end_and_in_the_figure(run, file, log, tmp_path):
    picture = tmp_path / "risk.svg"
    result = run("attack", file, "--log", log, "--encoder", "light", "--figure", picture)
    assert result.exit_code == 0, result.exception
    output = " ".join(result.stdout.split())
    words, queries = output.split("The strongest of the attacks tried")[-2:]
    assert "of the words" in words
    assert "of the queries at the first guess" in queries
    assert queries.count("The attacker knows") == words.count("The attacker knows") == 1
    drawn = picture.read_text()
    assert "words got back" in drawn
    assert "queries named" in drawn
    assert "lawyer" not in result.stdout + drawn


def test_what_was_not_measured_is_said(run, file, tmp_path):
    result = run("attack", file, "-n", 1)
    assert "No attack on queries was tried: their risk was not measured." in result.stdout
    assert "Not tried: query inference; it needs a query log: give one." in result.stdout
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("id,text,obfuscatedText\n1,skin,water\n1,skin,water wing\n")
    result = run("attack", theirs)
    assert "No attack on words was tried: their risk was not measured." in result.stdout
    assert "differ in their number of words" in result.stdout


def test_a_log_without_the_originals_is_refused(run, file, tmp_path):
    log = tmp_path / "small.txt"
    log.write_text("bread prices\nmilk prices\n")
    result = run("attack", file, "--log", log, "--encoder", "light")
    assert isinstance(result.exception, UsageError)
    assert "5 of the 5 originals are not in the log" in str(result.exception)
    assert "risk of 0 would be a lie" in str(result.exception)
    assert "lawyer" not in str(result.exception)
    added = run("attack", file, "--log", log, "--encoder", "light", "--add-originals", "-n", 1)
    assert added.exit_code == 0
    assert "7 queries, 5 of them originals that were added" in added.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-m", "cmpp"), "unknown mechanism"),
        (("-m", "cmp:epsilon=0"), "positive"),
        (("-m", "cmp:epsilon=nan"), "positive"),
        (("--release", "once"), "use release 'independent'"),
        (("-n", "0"), "at least one"),
        (("--encoder", "light"), "give a --log"),
        (("--engine-encoder", "light"), "give a --log"),
        (("--add-originals",), "give a --log"),
        (("--prior", "log"), "needs a log"),
        (("--log", "demo", "--add-originals", "--encoder", "secretmodel"), "no such encoder"),
        (("--figure", "risk.pdf"), "png"),
        (("--log", "nowhere.txt"), "no such file"),
    ],
)
def test_wrong_use_says_what_to_do(run, file, arguments, says):
    result = run("attack", file, *arguments)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)
    assert "secretmodel" not in str(result.exception)


def test_the_engines_encoder_attacks_too(run, file, log):
    result = run(
        *("attack", file, "--log", log, "--json", "-n", 5),
        *("--encoder", "light", "--engine-encoder", "light"),
    )
    named = [inference["by"] for inference in json.loads(result.stdout)["inferences"]]
    assert named == ["light", *COMPARED, "aligned"]


def test_the_epsilon_of_the_file_is_the_one_attacked(run, tmp_path, everyday_words):
    path = tmp_path / "theirs.csv"
    path.write_text("id,text,obfuscatedText,mechanism,epsilon\n1,skin,water,santext,5\n")
    for named in ((), ("-m", "santext")):
        report = json.loads(run("attack", path, *named, "--json").stdout)
        assert report["mechanism"] == "santext:epsilon=5"
    assert "another epsilon" in str(run("attack", path, "-m", "santext:epsilon=6").exception)


def test_mixed_files_are_refused(run, file):
    lines = file.read_text().splitlines()
    other = json.loads(lines[0]) | {"mechanism": "cmp:epsilon=5"}
    file.write_text("\n".join([*lines, json.dumps(other)]))
    assert "more than one mechanism" in str(run("attack", file).exception)


def test_a_file_made_with_another_space_is_refused(run, file):
    rows = [json.loads(line) | {"made_with": "0" * 64} for line in file.read_text().splitlines()]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert "--output-vocabulary" in str(run("attack", file).exception)


def test_whole_texts_have_no_words_to_line_up(run, file, log):
    rows = [
        {"id": number, "text": query, "variants": LOG[-3:]} for number, query in enumerate(QUERIES)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    result = run(
        *("attack", file, "-m", "comet-cmp", "--pool", log, "--pool-encoder", "light"),
        *("--log", log, "--encoder", "light", "--seed", 1),
    )
    assert result.exit_code == 0, result.exception
    assert "Not tried: words; the mechanism replaces whole texts" in result.stdout
    assert "No attack on words was tried" in result.stdout
    assert "aligned: the attacker knows the mechanism" in result.stdout


@pytest.mark.parametrize(
    "pipeline",
    [
        TextPipeline(punctuation="drop"),
        TextPipeline(pad_to=8),
        TextPipeline().laid_out(shuffle=True, pad_to=8),
    ],
    ids=["without punctuation", "padded", "shuffled and padded"],
)
def test_a_file_says_how_texts_were_laid_out_so_that_no_query_is_ruled_out(
    run, everyday_words, tmp_path, pipeline
):
    asked = [f"{query}?" for query in QUERIES]
    santext = mechanism("santext:epsilon=3", space=everyday_words)
    results = Obfuscator(santext, n=20, pipeline=pipeline, rng=5).obfuscate(asked)
    releases, log = tmp_path / "releases.jsonl", tmp_path / "log.txt"
    releases.write_text("\n".join(json.dumps(result.to_dict()) for result in results))
    log.write_text("\n".join([*asked, *LOG[len(QUERIES) :]]))
    result = run("attack", releases, "--log", log, "--encoder", "light", "-n", 20, "--json")
    assert result.exit_code == 0, result.exception
    inferences = json.loads(result.stdout)["inferences"]
    (aligned,) = [inference for inference in inferences if inference["by"] == "aligned"]
    assert aligned["risks"]["lazy"]["value"] == 1


def test_punctuation_that_somebody_else_dropped_rules_nothing_out(everyday_words):
    asked = [f"{query}?" for query in QUERIES]
    santext = mechanism("santext:epsilon=3", space=everyday_words)
    dropped = Obfuscator(santext, n=20, pipeline=TextPipeline(punctuation="drop"), rng=5)
    releases = [
        Released(query, query, result.variants)
        for query, result in zip(asked, dropped.obfuscate(asked), strict=True)
    ]
    log = QueryLog([*asked, *LOG[len(QUERIES) :]])
    report = attack(releases, mechanism=santext, log=log, counts=[20], attacks=["aligned"])
    assert report.queries.share == 1


def test_settings_of_texts_that_do_not_exist_are_refused_by_line(run, file):
    row = json.loads(file.read_text().splitlines()[0])
    for texts in (3, {"punctuation": "secret"}, {"secret": 1}):
        file.write_text(json.dumps(row | {"texts": texts}))
        result = run("attack", file)
        assert isinstance(result.exception, UsageError)
        assert "line 1" in str(result.exception)
        assert "secret" not in str(result.exception) or texts == {"punctuation": "secret"}
