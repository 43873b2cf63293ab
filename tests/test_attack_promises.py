"""What holds of every risk that is shown, and of every attacker.

No risk without what the attacker knew; one definition of the strongest attack; who knows more does
no worse; a constant release tells nothing, and a release of the truth everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from experiment_folder import KNOWS, write_folder
from fixed_mechanism import Fixed
from numpy.random import PCG64, Generator
from scipy.stats import binomtest
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.cli import app
from sottovoce.encoders import load_encoder
from sottovoce.errors import UsageError
from sottovoce.experiments import estimates
from sottovoce.experiments import summary as summaries
from sottovoce.experiments.estimates import strongest as strongest_by_setting
from sottovoce.experiments.measures import Measure
from sottovoce.experiments.report.write import sections
from sottovoce.experiments.results import Place, Results
from sottovoce.experiments.summary import summarize
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import attack
from sottovoce.privacy.attacks import report as reports
from sottovoce.privacy.attacks.headline import strongest
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.report import RiskReport
from sottovoce.privacy.attacks.words import TextWords, WordRecovery
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

BELIEFS = ("log of", "wordfreq", "uniform", "the variants alone")
"""What an attacker goes by: a log, frequencies of a language, nothing, or what is shown alone."""
WORDS = 60
SEEDS = (1, 2, 3)


def names_knowledge(knows: str) -> bool:
    return any(belief in knows for belief in BELIEFS)


def aligned(report: RiskReport) -> Inference:
    (inference,) = [made for _, made in report.inferences if made.attack == "aligned"]
    return inference


@pytest.fixture(scope="module")
def space() -> WordSpace:
    vectors = Generator(PCG64(4)).standard_normal((WORDS, 4))
    return WordSpace.from_arrays([f"w{number:02}" for number in range(WORDS)], vectors)


def texts_of(seed: int, count: int) -> list[str]:
    """Texts of two to four words, some much more frequent than others."""
    rng = Generator(PCG64(seed))
    chances = 1 / np.arange(1, WORDS + 1)
    ids = [rng.choice(WORDS, rng.integers(2, 5), p=chances / chances.sum()) for _ in range(count)]
    return list(dict.fromkeys(" ".join(f"w{number:02}" for number in text) for text in ids))


def released(
    mech: WordMechanism, texts: Sequence[str], n: int, seed: int, release: str = "independent"
) -> list[Released]:
    results = Obfuscator(mech, n=n, release=release, rng=seed).obfuscate(texts)
    return [Released(str(at), result.text, result.variants) for at, result in enumerate(results)]


# No risk without what the attacker knows


@pytest.fixture(scope="module", params=["with a log", "without a log"])
def report(request: pytest.FixtureRequest, space: WordSpace) -> RiskReport:
    """Every attack there is on few texts."""
    santext, texts = mechanism("santext:epsilon=2", space=space), texts_of(1, 20)
    with_log = request.param == "with a log"
    return attack(
        released(santext, texts[:6], 5, 1),
        mechanism=santext,
        log=QueryLog(texts) if with_log else None,
        encoders=[load_encoder("light")] if with_log else [],
    )


def test_every_result_of_an_attack_names_it_and_what_the_attacker_knows(report) -> None:
    headlines = [headline for headline in (report.words, report.queries) if headline]
    results = [*headlines, *(result for _, result in (*report.recoveries, *report.inferences))]
    assert len(results) >= 7
    for result in results:
        assert result.attack
        assert names_knowledge(result.knows), result.attack
    for headline in headlines:
        assert headline.attack in headline.sentence
        assert headline.knows in headline.sentence
        assert "of the attacks tried" in headline.sentence


def risks_in(data: Any) -> Iterator[dict[str, Any]]:
    """The parts of a JSON report that hold a risk: a share of something, or ranks."""
    if isinstance(data, dict):
        if {"what", "n"} & set(data) and {"share", "words", "risks"} & set(data):
            yield data
        for value in data.values():
            yield from risks_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from risks_in(value)


def test_every_risk_in_json_has_it_beside(report) -> None:
    risks = list(risks_in(json.loads(json.dumps(report.to_dict()))))
    shown = 1 + (report.queries is not None)
    assert len(risks) == shown + len(report.recoveries) + len(report.inferences)
    for risk in risks:
        assert risk["attack"]
        assert names_knowledge(risk["knows"])


@pytest.fixture(scope="module")
def printed(everyday_words: WordSpace, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    queries = ["skin cancer", "divorce lawyer cost", "night bus"]
    (folder / "log.txt").write_text("\n".join([*queries, "bread prices", "milk prices"]))
    santext = mechanism("santext:epsilon=2", space=everyday_words)
    rows = [result.to_dict() for result in Obfuscator(santext, n=5, rng=5).obfuscate(queries)]
    (folder / "releases.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = [str(folder / "releases.jsonl"), "--log", str(folder / "log.txt")]
    files += ["--space", str(everyday_words.folder)]
    runner = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"})
    return runner.invoke(app, ["attack", *files, "--encoder", "light"]).stdout


def test_every_row_that_is_printed_has_it_below(printed: str) -> None:
    legend = dict(re.findall(r"^  (\S+): the attacker knows (.+)$", printed, re.MULTILINE))
    rows = re.findall(r"^\W*(mode|uniform|prior|context|aligned|light)\W+\d+\W", printed, re.M)
    assert set(rows) == {"mode", "uniform", "prior", "context", "aligned", "light"} == set(legend)
    assert all(map(names_knowledge, legend.values()))
    for sentence in printed.strip().splitlines()[-2:]:
        attacker = re.search(r"attacks tried \((\w+), \d+ variants\).*knows (.+)\.$", sentence)
        assert attacker is not None
        assert attacker[2] == legend[attacker[1]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("experiment")
    return Results(
        write_folder(
            folder,
            mechanisms=("cmp", "santext"),
            engines=("bm25",),
            encoders=("light", "aligned"),
            tasks=(),
            words=0,
            queries=8,
            experiment={
                "utility": {"thresholds": [1]},
                "searching": {"depth": 10},
                "systems": [],
            },
            finished="2026-01-02",
            facts={
                "attackers": [dict.fromkeys(("light", "aligned", "mode", "context"), KNOWS)],
                "collection": [{"name": "demo", "documents": "0" * 64}],
            },
        )
    )


RISK_TABLES = ("strongest", "trades", "query-inference", "recovered", "quipu")


def test_every_table_of_risks_has_it_in_its_notes(results: Results) -> None:
    tables = [table for section in sections(results) for table in section.tables]
    of_risk = [table for table in tables if table.name.startswith(RISK_TABLES)]
    kinds = {name for name in RISK_TABLES for table in of_risk if table.name.startswith(name)}
    assert kinds == set(RISK_TABLES)
    for table in of_risk:
        parts = [*table.columns, *(str(cell) for row in table.rows for cell in row)]
        if table.name.startswith("query-inference"):
            parts.append(table.title)
        named = set(re.findall(r"\b(light|aligned|mode|context)\b", " ".join(parts)))
        if "strongest" in table.columns:
            by_setting = strongest_by_setting(results, "demo")
            named |= {best.attack.detail for best in by_setting.values()}
        assert named, table.name
        for name in named:
            assert f"{name}: the attacker knows {KNOWS}." in table.notes, (table.name, name)


def test_summaries_for_the_app_have_it_too(results: Results) -> None:
    (summary,) = summarize(results)
    for setting in summary["settings"]:
        for figure in ("lazy", "words"):
            assert setting[figure]["by"]
            assert setting[figure]["knows"] == KNOWS


# One definition of the strongest attack


def report_of(results: Results, setting: Any) -> RiskReport:
    """The same numbers of one setting, as the report of a run has them."""

    def values(kind: str) -> Iterator[tuple[str, dict[str, float]]]:
        for measure in results.measures(Place("demo"), kind):
            yield measure.detail, results.values(measure, Place("demo"))[setting]

    recoveries = [
        WordRecovery(
            name,
            KNOWS,
            # Two seeds of four words: eight make every mean a whole number of words.
            tuple(
                TextWords(query, 8, round(8 * share), 0, 0, False)
                for query, share in by_query.items()
            ),
        )
        for name, by_query in values("words")
    ]
    inferences = [
        Inference(
            name,
            KNOWS,
            1000,
            0,
            0,
            10,
            # One query of each seed.
            tuple(
                Attacked(f"{query} {seed}", setting.n, 1 if seed < round(2 * share) else 2, 0)
                for query, share in by_query.items()
                for seed in range(2)
            ),
        )
        for name, by_query in values("lazy")
    ]
    return RiskReport(
        releases=8,
        mechanism=None,
        release="independent",
        recoveries=tuple((setting.n, recovery) for recovery in recoveries),
        inferences=tuple((setting.n, inference) for inference in inferences),
        not_tried={},
    )


def test_report_estimates_and_summary_agree_on_the_strongest(results: Results) -> None:
    (summary,) = summarize(results)
    by_setting = strongest_by_setting(results, "demo")
    assert len(by_setting) == len(summary["settings"]) == 8
    for (setting, best), told in zip(by_setting.items(), summary["settings"], strict=True):
        assert told["mechanism"] == setting.mechanism
        assert told["epsilon"] == setting.epsilon
        report = report_of(results, setting)
        assert report.words is not None
        assert report.queries is not None
        assert (told["words"]["by"], told["lazy"]["by"]) == (
            report.words.attack,
            report.queries.attack,
        )
        assert told["words"]["value"] == pytest.approx(report.words.share)
        assert told["lazy"]["value"] == pytest.approx(report.queries.share)
        overall = strongest([report.words, report.queries])
        assert overall is not None
        assert best.mean == pytest.approx(overall.share)
        kind = "words" if overall.what == "words" else "lazy"
        tied = report.words.share == pytest.approx(report.queries.share)
        assert tied or best.attack == Measure(kind, overall.attack)


def test_nothing_but_that_function_chooses_an_attack(
    results: Results, report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turned upside down in its one place, every figure is that of the weakest attack."""

    def weakest(tried):
        return min(tried, key=lambda result: result.mean, default=None)

    places = {estimates: "_strongest", summaries: "strongest", reports: "strongest"}
    for module, name in places.items():
        assert getattr(module, name) is strongest
        monkeypatch.setattr(module, name, weakest)
    least = min(recovery.mean for _, recovery in report.recoveries)
    assert report.words.share == least < max(recovery.mean for _, recovery in report.recoveries)
    setting, weak = next(iter(strongest_by_setting(results, "demo").items()))
    told = summarize(results)[0]["settings"][0]
    assert (told["mechanism"], told["epsilon"]) == ("cmp", 1.0)
    assert (setting.mechanism, setting.epsilon) == ("cmp", 1.0)
    assert weak.mean == min(told["words"]["value"], told["lazy"]["value"])


def test_the_strongest_is_the_greatest_and_the_first_of_equals() -> None:
    def recovery(name: str, right: int) -> WordRecovery:
        return WordRecovery(name, "uniform", (TextWords("1", 10, right, 0, 0, False),))

    some = [recovery("a", 3), recovery("b", 7), recovery("c", 7), recovery("d", 0)]
    assert strongest(some) is some[1]
    assert strongest([]) is None


# Who knows more does no worse


def not_worse(less: Sequence[float], more: Sequence[float]) -> bool:
    """Not beyond chance: a sign test over texts finds no reason to believe it."""
    better = sum(b > a for a, b in zip(less, more, strict=True))
    worse = sum(b < a for a, b in zip(less, more, strict=True))
    return worse == 0 or binomtest(worse, better + worse, alternative="greater").pvalue > 0.01


class ByVectors:
    """The attacker's own encoder: means of the very vectors that the mechanism works with."""

    name = "means of words"
    sha256 = "0" * 64

    def __init__(self, space: WordSpace) -> None:
        self.space, self.dimension = space, space.dimension

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = [self.space.vectors[self.space.ids(text.split())].mean(axis=0) for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("spec", "release"),
    [
        ("santext:epsilon=1.5", "independent"),
        ("tem:epsilon=2", "independent"),
        ("custext:epsilon=1,k=6", "independent"),
        ("wbb:epsilon=1,k=2,n=8", "independent"),
        ("cmp:epsilon=3", "independent"),
        ("cmp:epsilon=3", "once"),
        ("mahalanobis:epsilon=3", "once"),
        ("vickrey-cmp:epsilon=3", "once"),
    ],
)
def test_who_knows_more_does_no_worse(
    space: WordSpace, spec: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder: Any = ByVectors(space)
    monkeypatch.setattr(QueryLog, "vectors", lambda log, by, progress=None: by.encode(log.queries))
    mech, n = mechanism(spec, space=space), 6
    words: dict[str, list[float]] = {}
    queries: dict[str, list[float]] = {}
    for seed in SEEDS:
        texts = texts_of(seed, 400)
        pipeline = TextPipeline(protect="all")
        results = Obfuscator(mech, n=n, release=release, rng=seed, pipeline=pipeline).obfuscate(
            texts[:60]
        )
        report = attack(
            [Released(str(at), result.text, result.variants) for at, result in enumerate(results)],
            mechanism=mech,
            release=release,
            pipeline=pipeline,
            log=QueryLog(texts),
            encoders=[encoder],
            counts=[1],
            rng=seed,
        )
        for seen, recovery in report.recoveries:
            rights = [float(text.right) for text in recovery.by_text]
            words.setdefault(f"{recovery.attack} {seen}", []).extend(rights)
        for seen, inference in report.inferences:
            # Nearer to the top is better.
            ranks = [-query.rank for query in inference.queries]
            queries.setdefault(f"{inference.attack} {seen}", []).extend(ranks)
    by_law, by_cosine = queries[f"aligned {n}"], queries[f"{encoder.name} {n}"]
    assert not_worse(by_cosine, by_law)
    assert not_worse(words[f"mode {n}"], words[f"prior {n}"])
    assert not_worse(words[f"uniform {n}"], words[f"prior {n}"])
    assert not_worse(by_cosine_of_one := queries[f"{encoder.name} 1"], by_law)
    assert len(by_cosine_of_one) == len(SEEDS) * 60
    if release == "independent":
        for name in ("uniform", "prior", "context"):
            assert not_worse(words[f"{name} 1"], words[f"{name} {n}"])
        assert not_worse(queries["aligned 1"], by_law)
    # And it shows: the law is not merely as good as a blind guess.
    assert sum(words[f"prior {n}"]) > sum(words["mode 1"])


# The two ends


def test_a_constant_gives_nothing_beyond_the_best_guess_beforehand(space: WordSpace) -> None:
    texts = texts_of(5, 300)
    log, attacked = QueryLog(texts), texts[:50]
    constant = Fixed(space, word=7)
    report = attack(
        released(constant, attacked, 5, 1), mechanism=constant, log=log, counts=[5], rng=1
    )
    others = [text for text in texts if text not in attacked]
    counts = np.bincount([int(word[1:]) for text in others for word in text.split()])
    best = f"w{counts.argmax():02}"
    words = [word for text in attacked for word in text.split()]
    shares = {recovery.attack: recovery.words.value for _, recovery in report.recoveries}
    assert shares["prior"] == pytest.approx(words.count(best) / len(words))
    assert shares["mode"] == pytest.approx(words.count("w07") / len(words))
    assert shares["uniform"] == pytest.approx(words.count("w00") / len(words))
    # What was drawn changes no guess: the same words for all texts of a length.
    other = Fixed(space, word=8)
    again = attack(released(other, attacked, 5, 2), mechanism=other, log=log, counts=[5], rng=1)
    for (_, one), (_, two) in zip(report.recoveries, again.recoveries, strict=True):
        if one.attack != "mode":
            assert one.by_text == two.by_text
    inference = aligned(report)
    for query, text in zip(inference.queries, attacked, strict=True):
        as_long = sum(len(other.split()) == len(text.split()) for other in log.queries)
        assert (query.rank, query.ties) == ((1 + as_long) / 2, as_long - 1)
    assert inference.lazy.value == 0


@pytest.mark.parametrize("announced", [True, False])
def test_the_truth_gives_everything(space: WordSpace, announced: bool) -> None:
    """With a law that says so, and by one learned from draws."""
    # No two of the same words: attacks that compare words alone cannot tell these apart.
    texts = list({frozenset(text.split()): text for text in texts_of(6, 200)}.values())
    truth = Fixed(space, announced=announced)
    report = attack(
        released(truth, texts[:40], 4, 1), mechanism=truth, log=QueryLog(texts), counts=[4], rng=1
    )
    for _, recovery in report.recoveries:
        assert recovery.words.value == recovery.whole.value == 1.0, recovery.attack
    for _, inference in report.inferences:
        assert inference.ranks.tolist() == [1.0] * 40, inference.attack
    assert report.words is not None
    assert report.queries is not None
    assert report.words.share == report.queries.share == 1.0


# What a log may be used for


def test_a_log_without_the_originals_is_refused_unless_they_are_added(space: WordSpace) -> None:
    santext, texts = mechanism("santext:epsilon=3", space=space), texts_of(7, 60)
    releases, log = released(santext, texts[:10], 3, 1), QueryLog(texts[4:])
    for only in (["aligned"], ["means"], []):
        with pytest.raises(UsageError, match="4 of the 10 originals are not in the log") as error:
            attack(
                releases,
                mechanism=santext,
                log=log,
                attacks=only,
                encoders=[] if only else [load_encoder("light")],
            )
        assert "w0" not in str(error.value)
    report = attack(releases, mechanism=santext, log=log, add_originals=True, counts=[3])
    inside = attack(releases, mechanism=santext, log=QueryLog(texts), counts=[3])
    for (_, inference), (_, other) in zip(report.inferences, inside.inferences, strict=True):
        assert (inference.added, inference.log) == (4, len(texts))
        assert other.attack == inference.attack
        if "centred" not in inference.attack:  # The centre is that of the log as it was given.
            assert other.queries == inference.queries


def test_beliefs_never_come_from_the_attacked_queries(space: WordSpace) -> None:
    santext, texts = mechanism("santext:epsilon=2", space=space), texts_of(8, 80)
    releases = released(santext, texts[:20], 3, 1)

    def words(log: Sequence[str]) -> dict[str, tuple[TextWords, ...]]:
        report = attack(
            releases,
            mechanism=santext,
            log=QueryLog(log),
            counts=[3],
            attacks=["prior", "context"],
        )
        for _, recovery in report.recoveries:
            assert f"log of {len(texts) - 20} queries without those attacked" in recovery.knows
        return {recovery.attack: recovery.by_text for _, recovery in report.recoveries}

    # In whatever case and spacing they stand in the log, they are taken out.
    loud = [f" {text.upper()}  " for text in texts[:20]]
    assert words(texts) == words([*loud, *texts[20:]])


@pytest.mark.parametrize("name", ["prior", "context"])
def test_a_log_of_attacked_queries_alone_is_refused(space: WordSpace, name: Any) -> None:
    santext = mechanism("santext:epsilon=2", space=space)
    releases = released(santext, ["w01 w02"], 3, 1)
    with pytest.raises(UsageError, match="no query besides those attacked") as error:
        attack(releases, mechanism=santext, log=QueryLog(["W01  w02"]), attacks=[name])
    assert "w01" not in str(error.value).casefold()
