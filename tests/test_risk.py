"""All attacks together, and the command that runs them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.cli import app
from sottovoce.encoders import load_encoder
from sottovoce.errors import UsageError
from sottovoce.privacy import attack
from sottovoce.privacy.attacks.priors import counted
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.releases import Released

QUERIES = [
    "skin cancer",
    "divorce lawyer cost",
    "night bus",
    "panic attack at work",
    "rent arrears",
]
LOG = [*QUERIES, *(f"{word} prices" for word in ("bread", "milk", "bus", "school", "coal"))]


def released(space, spec, n=20, release="independent"):
    obfuscator = Obfuscator(mechanism(spec, space=space), n=n, release=release, rng=5)
    return [
        Released(str(i), each.text, each.variants, each.mechanism, each.epsilon, each.release)
        for i, each in enumerate(obfuscator.obfuscate(QUERIES))
    ]


def test_the_headline_is_the_strongest_attack(default_space):
    releases = released(default_space, "cmp:epsilon=10")
    report = attack(
        releases,
        mechanism=mechanism("cmp:epsilon=10", space=default_space),
        log=QueryLog(LOG),
        encoders=[load_encoder("light")],
        counts=(1, 5),
        rng=1,
    )
    shares = [each.word_share for each in report.attacks]
    assert report.words is not None
    assert report.words.share == max(shares) > min(shares)
    lazy = [each.lazy.value for _, each in report.inferences]
    whole = [each.query_share for each in report.attacks]
    assert report.texts is not None
    assert report.texts.share == max(*lazy, *whole)
    assert [n for n, _ in report.inferences] == [1, 5, 20]


def test_counts_end_at_what_there_is(default_space):
    report = attack(released(default_space, "cmp:epsilon=10", n=3))
    assert sorted({each.n for each in report.recoveries}) == [1, 3]


def test_a_prior_counts_the_words_of_the_log(toy):
    frequencies = counted(toy, QueryLog(["a b", "A c", "zzz"]).queries)
    assert frequencies.tolist() == [3.0, 2.0, 2.0, 1.0, 1.0]
    with pytest.raises(UsageError, match="prior from the log"):
        attack([Released("1", "a", ("b",))], prior="log")


def test_nothing_to_attack_is_said(toy):
    with pytest.raises(UsageError, match="nothing to attack"):
        attack([Released("1", "a", ())])
    with pytest.raises(UsageError, match="needs an encoder"):
        attack([Released("1", "a", ("b",))], log=QueryLog(["a"]))


def test_no_text_in_the_report(default_space):
    report = attack(released(default_space, "cmp:epsilon=10", n=2), rng=1)
    said = json.dumps(report.to_dict()) + repr(report)
    assert "lawyer" not in said
    assert report.seeded


# The command


@pytest.fixture
def file(tmp_path, default_space):
    path = tmp_path / "releases.jsonl"
    rows = Obfuscator(mechanism("cmp:epsilon=10", space=default_space), n=5, rng=5)
    path.write_text("\n".join(json.dumps(r.to_dict()) for r in rows.obfuscate(QUERIES)))
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def test_a_file_of_ours_is_attacked_with_what_it_says_of_itself(file, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("\n".join(LOG))
    picture = tmp_path / "risk.svg"
    result = run("attack", file, "--log", log, "--seed", 1, "--encoder", "light", "--json")
    assert result.exit_code == 0, result.exception
    found = json.loads(result.stdout)
    assert found["mechanism"] == "cmp:epsilon=10"
    assert {each["attack"] for each in found["recoveries"] if each["applies"]} == {
        "mode",
        "centroid",
        "sampled",
    }
    result = run("attack", file, "--log", log, "--encoder", "light", "--figure", picture)
    assert "The strongest attack" in result.stdout
    assert "query inference" in picture.read_text()


def test_a_log_without_the_originals_is_refused(file, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("bread prices\nmilk prices\n")
    result = run("attack", file, "--log", log, "--encoder", "light")
    assert isinstance(result.exception, UsageError)
    assert "risk of 0 would be a lie" in str(result.exception)
    added = run("attack", file, "--log", log, "--encoder", "light", "--add-originals", "-n", 1)
    assert added.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-m", "cmpp"), "unknown mechanism"),
        (("-m", "cmp:epsilon=0"), "positive"),
        (("-m", "cmp:epsilon=nan"), "positive"),
        (("-m", "santext", "--release", "once"), "noise mechanisms only"),
        (("-n", "0"), "at least one"),
        (("--encoder", "light"), "give a --log"),
        (("--log", "demo", "--add-originals", "--encoder", "secretmodel"), "no such encoder"),
        (("--figure", "risk.pdf"), "png"),
        (("--log", "nowhere.txt"), "no such file"),
        (("--log", "demo", "--encoder", "light", "--engine-encoder", "light"), "another one"),
    ],
)
def test_wrong_use_says_what_to_do(file, arguments, says):
    result = run("attack", file, *arguments)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)
    assert "secretmodel" not in str(result.exception)


def test_the_epsilon_of_the_file_is_the_one_attacked(tmp_path, default_space):
    path = tmp_path / "theirs.csv"
    path.write_text("id,text,obfuscatedText,mechanism,epsilon\n1,skin,water,cmp,5\n")
    assert json.loads(run("attack", path, "--json").stdout)["mechanism"] == "cmp:epsilon=5"
    assert json.loads(run("attack", path, "-m", "cmp", "--json").stdout)["mechanism"] == (
        "cmp:epsilon=5"
    )
    assert "another epsilon" in str(run("attack", path, "-m", "cmp:epsilon=6").exception)


def test_parts_of_a_compound_are_attacked_one_by_one(small_space):
    santext = mechanism("santext", space=small_space, epsilon=50)
    (result,) = Obfuscator(santext, n=5, rng=1).obfuscate(["word1 word2-word3 word4"])
    assert set(result.variants) == {result.text}
    report = attack([Released("1", result.text, result.variants)], mechanism=santext, rng=1)
    found = {each.attack: each for each in report.attacks if each.n == 5}
    assert found["likelihood"].word_share == 1
    assert found["likelihood"].query_share == 1
    assert found["likelihood"].words == 4


def test_mixed_files_are_refused(tmp_path, file):
    lines = file.read_text().splitlines()
    other = json.loads(lines[0]) | {"mechanism": "cmp:epsilon=5"}
    file.write_text("\n".join([*lines, json.dumps(other)]))
    result = run("attack", file)
    assert "more than one mechanism" in str(result.exception)


def test_words_that_never_change_are_all_got_back(toy):
    texts = [Released(str(i), "a b c", ("a b c",) * 4) for i in range(10)]
    report = attack(texts)
    assert report.words is not None
    assert report.texts is not None
    assert report.words.share == report.texts.share == 1
    changed = [replace(each, variants=("e f e",) * 4) for each in texts]
    hidden = attack(changed)
    assert hidden.words is not None
    assert hidden.words.share == 0
    assert 0 < hidden.words.high < 0.2
    assert np.isclose(hidden.words.low, 0)


def test_the_whole_release_is_always_attacked(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=6)
    words = small_space.words(np.arange(40, 60))
    results = Obfuscator(cmp, n=60, release="once", rng=5).obfuscate(words)
    releases = [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]
    report = attack(releases, mechanism=cmp, release="once", rng=1)
    assert ("cell", 60) in {(each.attack, each.n) for each in report.attacks}


def test_texts_that_do_not_line_up_are_left_out_and_counted():
    same = [Released(str(i), "a b", ("a b", "a b", "a b")) for i in range(4)]
    uneven, unreleased = Released("5", "a b", ("a", "a b", "c")), Released("6", "a b", ())
    report = attack([*same, uneven, unreleased])
    assert report.words is not None
    assert report.words.share == 1
    assert {each.left_out for each in report.recoveries} == {1}


def test_another_vocabulary_is_not_taken_for_safety(small_space):
    from sottovoce.spaces.space import OutputVocabulary

    half = small_space.with_output(OutputVocabulary("half", np.arange(0, small_space.size, 2)))
    words = small_space.words(np.arange(40, 80))
    wbb = mechanism("wbb", space=half, k=4, n=50)
    results = list(Obfuscator(wbb, n=20, rng=5).obfuscate(words))
    releases = [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]
    right = attack(releases, mechanism=wbb, rng=1)
    wrong = attack(releases, mechanism=mechanism("wbb", space=small_space, k=4, n=50), rng=1)
    assert right.words is not None
    assert right.words.share > 0.9
    reasons = {each.why for each in wrong.recoveries if each.attack == "intersection"}
    assert any("cannot have made these releases" in why for why in reasons)
    assert results[0].made_with != mechanism("wbb", space=small_space).made_with


def test_a_file_made_with_another_space_is_refused(file):
    rows = [json.loads(line) | {"made_with": "0" * 64} for line in file.read_text().splitlines()]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert "--output-vocabulary" in str(run("attack", file).exception)


def test_whole_texts_have_no_words_to_line_up(file, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("\n".join(LOG))
    result = run("attack", file, "-m", "comet-cmp", "--log", log, "--encoder", "light")
    assert "no attack here that knows comet-cmp" in result.stdout
    assert "No attack on words applies" in result.stdout
