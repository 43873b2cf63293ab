"""Query inference by cosine: exact ranks, honest risks, and nothing of a person's own on disk."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from sottovoce.collections import demo_log
from sottovoce.encoders import load_encoder
from sottovoce.encoders.strong import StrongEncoder
from sottovoce.errors import UsageError
from sottovoce.paths import HOME_VARIABLE
from sottovoce.privacy.attacks import cosine
from sottovoce.privacy.attacks.cosine import TIE, attacker_encoders, centroids, infer, mid_ranks
from sottovoce.privacy.attacks.query_log import NOT_THERE, QueryLog, read_log
from sottovoce.privacy.attacks.ranked import Attacked, Inference
from sottovoce.privacy.attacks.releases import Released, read_releases
from sottovoce.threads import set_threads

SECRET = "zebrawood divorce"
needs_strong = pytest.mark.skipif(
    not StrongEncoder.installed(),
    reason="the strong encoder is not here: sottovoce spaces add strong",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def light(home, monkeypatch):
    """The light encoder; vectors of logs are kept for these tests alone."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    return load_encoder("light")


@pytest.fixture(scope="module")
def demo():
    return QueryLog(demo_log())


def released(*texts, variants=None):
    """Releases of texts; each one's only variant is the text itself unless told otherwise."""
    return [
        Released(str(at), text, tuple(variants[at]) if variants else (text,))
        for at, text in enumerate(texts)
    ]


# --- ranks -----------------------------------------------------------------------------------


def by_hand(points, targets, rows):
    """Ranks, scores and ties, one pair at a time."""
    for point, target in zip(points, targets, strict=True):
        scores = [
            math.fsum(float(a) * float(b) for a, b in zip(point, r, strict=True)) for r in rows
        ]
        own = scores[target]
        above = sum(score - own > TIE for score in scores)
        ties = sum(abs(score - own) <= TIE for score in scores) - 1
        yield 1 + above + ties / 2, own, ties


def unit(rows):
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@st.composite
def problems(draw):
    """Short vectors of small whole numbers, so that many tie, some a hair apart."""
    width = draw(st.integers(2, 5))
    row = st.lists(st.integers(-2, 2), min_size=width, max_size=width)
    rows = np.array(draw(st.lists(row, min_size=1, max_size=40)), dtype=np.float64)
    hairs = st.lists(st.sampled_from([0, 0, 1e-8, 4e-6, 1e-4]), min_size=len(rows))
    rows[:, 0] += draw(hairs)[: len(rows)]
    points = np.array(draw(st.lists(row, min_size=1, max_size=6)), dtype=np.float64)
    target = st.integers(0, len(rows) - 1)
    targets = np.array(draw(st.lists(target, min_size=len(points), max_size=len(points))))
    return unit(points), targets, unit(rows).astype(np.float32), draw(st.integers(0, len(rows)))


@given(problem=problems())
def test_ranks_are_those_of_float64_computed_pair_by_pair(problem):
    points, targets, rows, cut = problem
    ranks, scores, ties = mid_ranks(points, targets, (rows[:cut], rows[cut:]))
    expected = list(by_hand(points, targets, rows))
    assert list(zip(ranks, ties, strict=True)) == [(rank, tied) for rank, _, tied in expected]
    assert scores == pytest.approx([own for _, own, _ in expected], abs=1e-12)


def crowd(count, width, points):
    """Random directions, a third of them a hair away from the points' own targets."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((count, width))
    near = rng.integers(points, size=count // 3)
    rows[count - len(near) :] = unit(rows[near]) + rng.standard_normal((len(near), width)) * 2e-6
    return rng.standard_normal((points, width)), unit(rows).astype(np.float32)


def test_neither_blocks_nor_threads_change_a_rank(monkeypatch):
    points, rows = crowd(6000, 384, 30)
    points, targets = unit(points), np.arange(30)
    expected = [each.tolist() for each in mid_ranks(points, targets, (rows,))]
    assert min(expected[0]) >= 1
    assert any(tied > 0 for tied in expected[2])
    for log, some, pairs, count in ((7, 3, 5, 1), (1000, 30, 1, 2), (4096, 1, 4096, 2)):
        monkeypatch.setattr(cosine, "LOG_AT_A_TIME", log)
        monkeypatch.setattr(cosine, "POINTS_AT_A_TIME", some)
        monkeypatch.setattr(cosine, "PAIRS_AT_A_TIME", pairs)
        set_threads(count)
        try:
            found = mid_ranks(points, targets, (rows[:777], rows[777:]))
        finally:
            set_threads(None)
        assert [each.tolist() for each in found] == expected


def test_near_scores_are_decided_in_float64():
    """Products in float32 alone would order these otherwise."""
    points, rows = crowd(3000, 384, 10)
    points, targets = unit(points), np.arange(10)
    exact = (rows[:, None].astype(np.float64) * points).sum(axis=2)
    lead = exact - exact[targets, np.arange(10)]
    ranks, _, ties = mid_ranks(points, targets, (rows,))
    assert ties.tolist() == ((abs(lead) <= TIE).sum(axis=0) - 1).tolist()
    assert ranks.tolist() == (1 + (lead > TIE).sum(axis=0) + ties / 2).tolist()
    rough = rows @ points.T.astype(np.float32)
    rough_lead = rough - rough[targets, np.arange(10)]
    assert ((rough_lead > TIE) != (lead > TIE)).any()


def test_memory_does_not_grow_with_the_log():
    angles = np.linspace(0, np.pi, 150_000)
    rows = np.zeros((len(angles), 64), dtype=np.float32)
    rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    points = np.tile(np.eye(1, 64), (43, 1))
    points[:4] = 0.0  # Every row ties for these.
    tracemalloc.start()
    ranks, _, _ = mid_ranks(points, np.full(43, 1000), (rows,))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ranks[0] == (1 + len(rows)) / 2
    assert ranks[-1] == pytest.approx(1001, abs=1)
    assert peak < 24 << 20  # One float32 score for each pair alone would take that much.


# --- the attack ------------------------------------------------------------------------------


def test_an_unchanged_release_is_found_at_once(light, demo):
    texts = demo.queries[:200]
    found = infer(released(*texts), demo, light)
    assert found.log == len(demo)
    assert found.lazy.value > 0.95
    assert found.active.value == 1.0


def test_case_and_spacing_never_matter(light, demo):
    texts = demo.queries[:60]
    plain = released(*texts, variants=[demo.queries[100 + at :: 997] for at in range(60)])
    loud = [
        replace(
            each, text=f"  {each.text.title()}\t", variants=tuple(map(str.upper, each.variants))
        )
        for each in plain
    ]
    noisy_log = QueryLog(query.swapcase() + " " for query in demo.queries)
    assert infer(plain, demo, light).queries == infer(loud, noisy_log, light).queries


def test_unrelated_releases_rank_at_random(light, demo):
    rng = np.random.default_rng(7)
    drawn = rng.choice(len(demo), size=(400, 6), replace=False)
    texts = [[demo.queries[at] for at in row] for row in drawn]
    releases = released(*(row[0] for row in texts), variants=[row[1:] for row in texts])
    found = infer(releases, demo, light)
    assert kstest((found.ranks - 0.5) / len(demo), "uniform").pvalue > 0.001
    assert found.lazy.value < 0.02


def test_queries_of_the_same_words_tie_and_share_their_rank(light):
    log = QueryLog(["skin cancer treatment", "bicycle repair", "Treatment  skin CANCER", "pasta"])
    (each,) = infer(released("treatment skin cancer"), log, light).queries
    assert (each.rank, each.ties) == (1.5, 1)
    found = infer(released("treatment skin cancer"), log, light, depth=1)
    assert found.lazy.value == found.active.value == 0.0
    assert found.motivated.value == pytest.approx(2 / 3)


def test_more_variants_point_to_the_mean_of_them(light, demo):
    text, first, second = demo.queries[10], demo.queries[20], demo.queries[30]
    both = released(text, variants=[[first, second, second]])
    rows = light.encode([first, second, second, text]).astype(np.float64)
    mean = rows[:3].mean(axis=0)
    expected = mean @ rows[3] / np.linalg.norm(mean) / np.linalg.norm(rows[3])
    (centroid,) = centroids(light, [[first, second, second]])
    assert centroid @ rows[3] == pytest.approx(expected, abs=1e-6)
    (attacked,) = infer(both, demo, light).queries
    assert attacked.variants == 3
    by_cosine = light.encode(demo.queries).astype(np.float64) @ centroid
    lead = by_cosine - by_cosine[10]
    ties = (abs(lead) <= TIE).sum() - 1
    assert attacked.rank == 1 + (lead > TIE).sum() + ties / 2
    only_first = infer(both, demo, light, variants=1)
    assert only_first.queries == infer(released(text, variants=[[first]]), demo, light).queries


def test_a_blank_variant_says_nothing(light, demo):
    (each,) = infer(released(demo.queries[5], variants=[["", " "]]), demo, light).queries
    assert each.rank == (len(demo) + 1) / 2


def test_a_log_without_the_originals_is_refused(light, demo):
    releases = released(SECRET, demo.queries[0], f"{SECRET.upper()} ", "zebrawood lawyer")
    with pytest.raises(UsageError, match="2 of the 3 originals are not in the log") as error:
        infer(releases, demo, light)
    assert "--add-originals" in str(error.value)
    assert "zebrawood" not in str(error.value)


def test_added_originals_rank_as_if_they_stood_in_the_log(light, demo):
    releases = released(SECRET, demo.queries[0], variants=[["divorce wood", "marriage"], ["pasta"]])
    found = infer(releases, demo, light, add_originals=True)
    assert (found.log, found.added) == (len(demo) + 1, 1)
    inside = infer(releases, QueryLog([*demo.queries, SECRET]), light)
    assert found.queries == inside.queries
    assert inside.added == 0


def test_a_persons_own_queries_never_come_to_disk(light, tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    log = QueryLog(demo_log()[:50])
    log.vectors(light)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert len(before) == 1
    releases = released(SECRET, variants=[["zebra forest", "marriage"]])
    infer(releases, log, light, add_originals=True)
    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before


def test_a_release_without_variants_is_left_out_and_counted(light, demo):
    releases = [*released(*demo.queries[:3]), Released("none", SECRET, ())]
    found = infer(releases, demo, light)
    assert (len(found.queries), found.unreleased) == (3, 1)
    with pytest.raises(UsageError, match="nothing to attack"):
        infer(releases[3:], demo, light)


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_blank_original_is_an_error(light, demo, blank):
    with pytest.raises(UsageError, match="1 of the originals are blank"):
        infer(released(demo.queries[0], blank), demo, light, add_originals=True)


@pytest.mark.parametrize("wrong", [{"variants": 0}, {"depth": 0}, {"variants": -1}])
def test_numbers_below_one_are_refused(light, demo, wrong):
    with pytest.raises(UsageError, match="1 or more"):
        infer(released(demo.queries[0]), demo, light, **wrong)


def test_progress_ends_at_all_variants(light, demo):
    seen = []
    infer(released(*demo.queries[:130]), demo, light, progress=lambda *at: seen.append(at))
    assert seen[-3:] == [(64, 130), (128, 130), (130, 130)]


# --- risks -----------------------------------------------------------------------------------


def ranked(*ranks, log=1000, depth=10):
    queries = tuple(Attacked(str(at), 1, rank, 0) for at, rank in enumerate(ranks))
    return Inference("light", "a log", log, 0, 0, depth, queries)


def test_risks_follow_from_ranks():
    found = ranked(1, 1.5, 10, 10.5)
    assert found.lazy.value == 0.25
    assert found.active.value == 0.75
    assert found.motivated.value == pytest.approx((1 + 1 / 1.5 + 1 / 10 + 1 / 10.5) / 4)
    biased = (1 + 0.8**0.5 + 0.8**9 + 0.8**9.5) / 4
    assert found.biased_from_one.value == pytest.approx(biased)
    assert found.biased.value == pytest.approx(0.2 * biased)
    assert ranked(1, 1).biased_from_one.value == 1.0
    assert ranked(1, 1.5, 10, 10.5, depth=11).active.value == 1.0


def test_intervals_hold_the_values_and_are_those_they_say():
    found = ranked(*[1] * 5, *[50] * 5)
    assert (found.lazy.low, found.lazy.high) == pytest.approx((0.18709, 0.81291), abs=1e-5)
    for risk in found.risks.values():
        assert risk.low < risk.value < risk.high
    assert {risk.interval for risk in (found.lazy, found.active)} == {"Clopper-Pearson"}
    assert found.motivated.interval == "bootstrap over queries"
    assert ranked(1, 1, 1).lazy.low == pytest.approx(0.025 ** (1 / 3))


def test_chance_is_what_a_blind_guess_reaches():
    every_rank = ranked(*range(1, 21), log=20)
    for risk in every_rank.risks.values():
        assert risk.chance == pytest.approx(risk.value)
    assert ranked(1, log=5).active.chance == 1.0


def test_the_result_is_json_without_any_text(light, demo):
    texts = [SECRET, *demo.queries[:3]]
    found = infer(released(*texts), demo, light, add_originals=True)
    line = json.dumps(found.to_dict()) + repr(found)
    assert json.loads(json.dumps(found.to_dict()))["risks"]["lazy"]["measure"] == "P@1"
    assert not any(text in line for text in texts)


# --- encoders --------------------------------------------------------------------------------


def names(*arguments):
    return [each.name for each in attacker_encoders(*arguments)]


def test_the_engines_encoder_is_among_the_attackers():
    """The engine is the stranger: it has read every variant, and its encoder is at hand."""
    assert "light" in names("light")
    assert "light" in names("light", "light")
    for engine in ("light", "auto", None):
        encoders = names(engine)
        assert len(encoders) == len(set(encoders))


@needs_strong
def test_the_attacker_tries_every_encoder_there_is():
    assert names() == names("light") == names("strong") == names("auto") == ["light", "strong"]
    assert names(None, "auto") == names("auto", "auto") == ["strong"]
    assert names("strong", "light") == ["light", "strong"]


def test_a_model_of_the_engines_own_is_loaded_and_never_left_out():
    with pytest.raises(UsageError, match="no such encoder"):
        names("some-model-of-theirs")


def test_without_the_strong_encoder_light_attacks_alone(monkeypatch):
    monkeypatch.setattr(StrongEncoder, "installed", staticmethod(lambda: False))
    assert names() == names("light") == names("auto") == ["light"]


def test_every_inference_says_what_the_attacker_knows(light, demo):
    inference = infer(released(SECRET, demo.queries[0]), demo, light, add_originals=True)
    assert inference.attack == "light"
    assert f"a log of {len(demo) + 1:,} queries with the true one in it" in inference.knows
    assert "encoder light" in inference.knows
    assert inference.to_dict()["knows"] == inference.knows


# --- logs ------------------------------------------------------------------------------------


def test_a_log_holds_each_query_once():
    log = QueryLog(["Skin  cancer", "skin cancer ", "", " ", "caf\u0065\u0301", "CAF\u00c9"])
    assert log.queries == ["skin cancer", "caf\u00e9"]
    assert log.places(["caf\u00e9", "pasta", "caf\u00e9"]).tolist() == [1, NOT_THERE, 1]
    assert "cancer" not in repr(log)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.txt", "skin cancer\n\nred, green\r\n"),
        ("log", "\ufeffskin cancer\nred, green"),
        ("log.tsv", "here\tskin cancer\nthere\tred, green\n"),
        ("log.tsv", "AnonID\tQuery\tQueryTime\n1\tskin cancer\t2006\n\n2\tred, green\t2006\n"),
        ("log.csv", 'user,query\n1,skin cancer\n2,"red, green"\n'),
        ("log.CSV", 'text\nskin cancer\n\n"red, green"\n'),
        ("log.jsonl", '{"query": "skin cancer", "text": "x"}\n\n{"text": "red, green"}\n'),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_logs_are_read_in_many_forms(tmp_path, name, content, zipped):
    file = tmp_path / (name + ".gz" * zipped)
    data = content.encode()
    file.write_bytes(gzip.compress(data) if zipped else data)
    assert [query.strip() for query in read_log(file)] == ["skin cancer", "red, green"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.txt", "", "holds no query"),
        ("log.txt", " \n\n", "holds no query"),
        ("log.csv", "", "no column query or text"),
        ("log.csv", "id,words\n1,zebrawood\n", "no column query or text"),
        ("log.csv", "id,query\n1,fine\n2,zebrawood,lawyer\n", "line 3"),
        ("log.tsv", "query\tid\nfine\t1\n\nzebrawood", None),
        ("log.tsv", "id\tquery\n1\tfine\n\nzebrawood", "line 4 .* fewer fields"),
        ("log.jsonl", '{"query": "fine"}\n{zebrawood}\n', "line 2 .* not JSON"),
        ("log.jsonl", '{"query": "fine"}\n{"words": "zebrawood"}\n', "line 2 "),
        ("log.jsonl", '{"query": "fine"}\n{"query": 5}\n', "line 2 "),
        ("log.jsonl", '{"query": "fine"}\n["zebrawood"]\n', "line 2 "),
        ("log.txt", "fine\nzebra\0wood", "line 2 "),
    ],
)
def test_errors_name_the_line_and_never_its_content(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_text(content)
    if message is None:
        assert read_log(file) == ["fine", "zebrawood"]
        return
    with pytest.raises(UsageError, match=message) as error:
        read_log(file)
    assert "zebra" not in str(error.value)


def test_a_plain_log_has_no_header(tmp_path):
    (tmp_path / "log.txt").write_text("text\nskin cancer\n")
    assert read_log(tmp_path / "log.txt") == ["text", "skin cancer"]


def test_the_demo_log_is_there_by_name():
    assert read_log("demo") == demo_log()
    with pytest.raises(UsageError, match="no such file"):
        read_log("demo-of-nothing")


# --- published releases ----------------------------------------------------------------------


def test_published_releases_against_a_real_log(shared_data, light):
    log = QueryLog(read_log(shared_data / "querylog" / "pool_distinct.tsv.gz"))
    assert len(log) == 120_644
    lazy = {}
    for name in ("TEM_1", "TEM_5", "CMP_5", "CMP_10", "CMP_15"):
        mechanism = name.partition("_")[0]
        file = f"reference/msmarco-dl19/{mechanism}/obfuscatedText_{name}.csv.gz"
        found = infer(read_releases(shared_data / file), log, light)
        assert (len(found.queries), found.added) == (43, 0)
        lazy[name] = found.lazy.value
    assert lazy["TEM_5"] == 1.0  # The release is the query itself.
    assert lazy["TEM_1"] == 0.0
    assert lazy["CMP_5"] < lazy["CMP_10"] < lazy["CMP_15"] < 1.0
    assert lazy["CMP_10"] == pytest.approx(33 / 43)
