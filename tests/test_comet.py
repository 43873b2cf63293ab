"""COMET's noise, its exact choice from the pool, and what it promises."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from command_line import as_text, run_command
from cover_cases import Table
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import integrate, stats

from sottovoce import Obfuscator, mechanism, obfuscate
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import Entry
from sottovoce.pools import Pool, load_pool
from sottovoce.randomness import Draws, Streams
from sottovoce.text import folded_text
from sottovoce.threads import set_threads

pytestmark = pytest.mark.usefixtures("home")

NAMES = ["comet-cmp", "comet-mahalanobis"]
LEVEL = 1e-4
"""Chance of a false alarm in each goodness-of-fit test; seeds are fixed, so it never flickers."""


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


def draws(count, seed=1):
    return Draws([(np.random.default_rng(seed), count)])


def table(rows):
    encoder = Table(rows)
    return Pool([str(row) for row in range(len(encoder.rows))], encoder)


def circle(degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


# The noise


@pytest.mark.parametrize("epsilon", [1.0, 12.5])
def test_noise_has_its_gamma_radius_in_its_own_norm(demo, epsilon):
    d = demo.dimension
    law = stats.gamma(d, scale=1 / (epsilon * np.sqrt(d))).cdf
    plain = mechanism("comet-cmp", pool=demo, epsilon=epsilon)
    radius = np.linalg.norm(plain.noise(draws(3000)), axis=1)
    assert radius.mean() == pytest.approx(np.sqrt(d) / epsilon, rel=0.01)
    assert stats.kstest(radius, law).pvalue > LEVEL
    shaped = mechanism("comet-mahalanobis", pool=demo, epsilon=epsilon)
    covariance = np.cov(demo.vectors.T.astype(np.float64))
    covariance /= np.diag(covariance).mean()
    inverse = np.linalg.inv(0.75 * covariance + 0.25 * np.eye(d))
    noise = shaped.noise(draws(3000))
    own = np.sqrt((noise @ inverse * noise).sum(axis=1))
    assert stats.kstest(own, law).pvalue > LEVEL
    assert np.allclose(shaped.log_density(noise), -epsilon * np.sqrt(d) * own)
    published = replace(shaped, compat="authors").noise(draws(3000))
    assert stats.kstest(np.linalg.norm(published, axis=1), law).pvalue > LEVEL


def test_the_covariance_is_that_of_the_pool(demo):
    expected = np.cov(demo.vectors.T.astype(np.float64))
    np.testing.assert_allclose(
        demo.covariance, expected / np.diag(expected).mean(), rtol=1e-7, atol=1e-9
    )
    with pytest.raises(UsageError, match="same vector"):
        _ = table([[0.6, 0.8], [0.6, 0.8]]).covariance


@pytest.mark.parametrize("name", NAMES)
def test_density_ratios_keep_the_true_budget_and_exceed_the_papers(demo, name):
    chosen = mechanism(name, pool=demo, epsilon=2.0)
    texts, others = demo.strings[:40], demo.strings[40:80]
    here, there = (chosen.encode(each).astype(np.float64) for each in (texts, others))
    noise = chosen.noise(draws(40))
    far = chosen.distances(texts, others)
    straight = np.linspace(0, 1, 40)[:, None] * (there - here)
    largest = 0.0
    for points in (here + noise, here - 5 * (there - here), here + straight):
        ratio = chosen.log_density(points - here) - chosen.log_density(points - there)
        assert (ratio <= chosen.guarantee.epsilon * far * (1 + 1e-9)).all()
        largest = max(largest, ratio.max())
    assert largest > chosen.published.epsilon * 2


def test_published_mahalanobis_noise_has_no_metric_bound(demo):
    """Its log-ratio does not vanish with the distance."""
    chosen = mechanism("comet-mahalanobis", pool=demo, compat="authors")
    _, axes = np.linalg.eigh(chosen.noise_law.shape.matrix)
    step = 1e-3 * (axes[:, 0] - axes[:, -1])
    (ratio,) = chosen.log_density((1e-4 * axes[:, -1:]).T) - chosen.log_density(
        (1e-4 * axes[:, -1] + step)[None]
    )
    assert ratio > 20 * chosen.budget * np.linalg.norm(step)


# The choice


unit_interval = st.floats(-1, 1, width=32)


@st.composite
def pools(draw):
    """Vectors, some of them equal or zero, of length 1 at most."""
    size, dimension = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    rows = draw(arrays.arrays(np.float32, (size, dimension), elements=unit_interval))
    copies = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    rows = rows[copies]
    return rows / np.maximum(1, np.linalg.norm(rows.astype(np.float64), axis=1))[:, None]


@given(pools(), st.integers(0, 2**32), st.sampled_from([0.05, 1.0, 30.0]), st.booleans())
def test_the_choice_is_the_brute_force_one(rows, seed, epsilon, once):
    pool = table(rows)
    chosen = mechanism("comet-cmp", pool=pool, epsilon=epsilon)
    n = min(3, len(pool))
    texts = [str(row) for row in range(min(5, len(rows)))]
    places = chosen.release(texts, n, once, 7, Streams(seed, chosen.spec))
    for number, text in enumerate(texts):
        for variant in range(1 if once else n):
            generator = Streams(seed, chosen.spec).generator(7 + number, variant, 0, 0)
            noise = chosen.noise(Draws([(generator, 1)]))
            z = (pool.encoder.encode([text]) + noise).astype(np.float32).astype(np.float64)
            products = (z * pool.vectors.astype(np.float64)).sum(axis=1)
            best = np.argsort(-products, kind="stable")
            if once:
                assert places[number].tolist() == best[:n].tolist()
            else:
                assert places[number, variant] == best[0]


def test_equal_vectors_go_to_the_first_string():
    pool = table(circle([0, 90, 90, 0, 200]))
    chosen = mechanism("comet-cmp", pool=pool, epsilon=1e6)
    for text, wanted in (("3", "0"), ("2", "1"), ("4", "4")):
        assert set(obfuscate(text, chosen, n=4)) == {wanted}
    (result,) = Obfuscator(chosen, n=4, release="once").obfuscate(["2"])
    assert result.variants == ("1", "2", "0", "3")


def test_draws_in_the_plane_follow_the_exact_law():
    """Strings on the circle: each has a sector, whose chance is an integral of the density."""
    degrees = np.array([0.0, 40.0, 100.0, 180.0, 290.0])
    pool = table(circle(degrees))
    chosen = mechanism("comet-cmp", pool=pool, epsilon=1.5)
    budget = chosen.guarantee.epsilon
    assert budget == pytest.approx(1.5 * np.sqrt(2))
    middle = np.radians((degrees + np.roll(degrees, -1) + np.array([0] * 4 + [360])) / 2)
    edges = np.concatenate([[middle[-1] - 2 * np.pi], middle])

    def density(radius, angle, x, y):
        away = np.hypot(radius * np.cos(angle) - x, radius * np.sin(angle) - y)
        return radius * np.exp(-budget * away) * budget**2 / (2 * np.pi)

    law = np.array(
        [
            [
                integrate.dblquad(density, a, b, 0, 20, args=tuple(row), epsabs=1e-7)[0]
                for a, b in pairwise(edges)
            ]
            for row in pool.vectors
        ]
    )
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-5)
    count = 60_000
    drawn = chosen.sample(pool.strings, count, np.random.default_rng(5))
    for column, row in zip(drawn.T, law, strict=True):
        seen = np.bincount(column, minlength=5)
        assert stats.chisquare(seen, row / row.sum() * count).pvalue > LEVEL
    worst = np.log(law[:, None] / law).max(axis=2)
    far = chosen.distances(np.repeat(pool.strings, 5), np.tile(pool.strings, 5)).reshape(5, 5)
    assert (worst <= budget * far + 1e-4).all()
    assert worst.max() > 1.5, "the paper's bound, epsilon for any two texts, does not hold"


@pytest.mark.parametrize("spec", [*NAMES, "comet-cmp:compat=authors"])
def test_batches_threads_and_places_change_nothing(demo, spec, monkeypatch):
    chosen = mechanism(spec, pool=demo, epsilon=4.0)
    texts = [*demo.strings[:150:2], "", "something else altogether"]

    def run(first=0, **options):
        results = Obfuscator(chosen, n=3, rng=9, **options).obfuscate(texts[first:], first=first)
        return [result.variants for result in results]

    whole = run()
    assert run(batch_size=1) == run(batch_size=7) == whole
    assert run(first=20) == whole[20:]
    monkeypatch.setattr("sottovoce.mechanisms.comet.ROWS_AT_A_TIME", 12)
    assert run() == whole, "how many points are decided at once"
    try:
        set_threads(1)
        assert run() == whole
    finally:
        set_threads(None)
    assert [r.variants for r in Obfuscator(chosen, n=3, rng=10).obfuscate(texts)] != whole


@pytest.mark.slow
def test_worker_processes_change_nothing(demo):
    chosen = mechanism("comet-mahalanobis", pool=demo, epsilon=4.0)
    texts = demo.strings[:40]
    one, two = (
        [
            r.variants
            for r in Obfuscator(chosen, n=2, rng=9, batch_size=9, workers=w).obfuscate(texts)
        ]
        for w in (1, 2)
    )
    assert one == two


# The promise


@pytest.mark.parametrize(("name", "metric"), [
    ("comet-cmp", "euclidean(light)"),
    ("comet-mahalanobis", "mahalanobis(light, lambda=0.75)"),
])  # fmt: skip
def test_the_guarantee_states_the_true_budget(demo, name, metric):
    chosen = mechanism(name, pool=demo, epsilon=3.0)
    stated = chosen.guarantee
    assert (stated.notion, stated.metric, stated.scope) == ("metric", metric, "text")
    assert stated.epsilon == pytest.approx(3 * 16)
    assert (chosen.published.notion, chosen.published.epsilon) == ("local", 3.0)
    (result,) = Obfuscator(chosen, n=5).obfuscate(["skin cancer"])
    assert result.spent == pytest.approx(5 * 48)
    assert result.epsilon == 3.0
    (once,) = Obfuscator(chosen, n=5, release="once").obfuscate(["skin cancer"])
    assert once.spent == pytest.approx(48)
    assert len(set(once.variants)) == 5
    assert "one noisy point of the text" in " ".join(once.guarantee.caveats)
    assert "cost n times" not in " ".join(once.guarantee.caveats)


def test_the_bound_for_any_two_texts(demo):
    plain = mechanism("comet-cmp", pool=demo, epsilon=3.0)
    assert list(plain.facts().values()) == [pytest.approx(96)]
    assert "96 nats" in " ".join(plain.guarantee.caveats)
    shaped = mechanism("comet-mahalanobis", pool=demo, epsilon=3.0)
    euclidean, any_two = shaped.facts().values()
    smallest = np.linalg.eigvalsh(0.75 * demo.covariance + 0.25 * np.eye(256)).min()
    assert euclidean == pytest.approx(48 / np.sqrt(smallest))
    assert any_two == pytest.approx(2 * euclidean)
    assert shaped.distances(demo.strings[:50], demo.strings[50:100]).max() * 48 <= any_two


@pytest.mark.parametrize("name", NAMES)
def test_published_code_shares_noise_and_has_no_guarantee(demo, name):
    chosen = mechanism(name, pool=demo, epsilon=0.5, compat="authors")
    assert chosen.guarantee.notion == "none"
    assert chosen.published.epsilon == 0.5
    assert chosen.facts() == {}
    for rng in (1, None):
        results = list(Obfuscator(chosen, n=4, rng=rng).obfuscate(["skin cancer"] * 6))
        assert len({result.variants for result in results}) == 1
        assert len(set(results[0].variants)) > 1
        assert results[0].spent is None
    ours = Obfuscator(replace(chosen, compat="none"), n=4, rng=1).obfuscate(["skin cancer"] * 6)
    assert len({result.variants for result in ours}) == 6


def test_many_different_texts_come_out_as_few_where_noise_is_shared(demo):
    """At epsilon 1 the authors' released tweets, 999 of them, are 3 different strings."""
    texts = demo.strings[:300]
    shared, own = (
        {r.variants for r in Obfuscator(chosen, rng=1).obfuscate(texts)}
        for chosen in (
            mechanism("comet-cmp", pool=demo, epsilon=1.0, compat=compat)
            for compat in ("authors", "none")
        )
    )
    assert len(shared) < 30 < 200 < len(own)


def test_a_text_of_the_pool_may_come_back_and_is_counted(demo):
    text = demo.strings[17]
    shouted = f"  {text.upper()} "
    loud = mechanism("comet-cmp", pool=demo, epsilon=1e4)
    (result,) = Obfuscator(loud, n=4).obfuscate([text])
    assert result.variants == (text,) * 4
    assert result.unchanged == 1.0
    (result,) = Obfuscator(loud, n=1).obfuscate([shouted])
    assert result.unchanged == float(result.variants[0] == text)
    (result,) = Obfuscator(replace(loud, epsilon=0.01), n=4, rng=1).obfuscate([text])
    assert result.unchanged == 0.0


def test_a_blank_text_is_covered_like_any_other(demo):
    """Its vector is 0, so noise alone decides; nobody can tell that there was nothing."""
    chosen = mechanism("comet-cmp", pool=demo)
    for text in ("", " \t\n", "\u200b"):
        (result,) = Obfuscator(chosen, n=6).obfuscate([text])
        assert len(result.variants) == 6
        assert len(set(result.variants)) > 1
        assert result.spent == pytest.approx(6 * chosen.budget)
    assert chosen.distances([""], ["skin cancer"])[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("rows", [[[3.0, 4.0], [1.0, 0.0]], [[np.nan, 0.0], [1.0, 0.0]]])
def test_vectors_that_void_the_bound_release_nothing(rows):
    with pytest.raises(SottovoceError, match="nothing was released"):
        obfuscate("0", mechanism("comet-cmp", pool=table(rows)))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("comet-cmp:epsilon=0", "positive"),
        ("comet-mahalanobis:lambda=1.5", "between 0 and 1"),
        ("comet-cmp:compat=pypantera", "one of none, authors"),
        ("comet-cmp:lambda=0.5", "no such parameter"),
    ],
)
def test_impossible_parameters_are_refused(demo, spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, pool=demo)


def test_no_more_strings_than_the_pool_has_are_read_off_a_point():
    pool = table(circle([0, 90]))
    with pytest.raises(UsageError, match="the pool has 2"):
        Obfuscator(mechanism("comet-cmp", pool=pool), n=3, release="once")
    assert len(obfuscate("0", mechanism("comet-cmp", pool=pool), n=3)) == 3


def test_without_a_pool_it_says_how_to_give_one():
    with pytest.raises(UsageError, match="--pool"):
        mechanism("comet-cmp")


@pytest.mark.slow
def test_queries_of_dl_2019_come_out_as_documented(shared_data):
    """The table of docs/mechanisms.md: with the queries in the pool, and without them."""
    log = load_pool(shared_data / "querylog" / "pool_distinct.tsv.gz", "light")
    queries = load_pool(shared_data / "topics" / "dl19", "light").strings
    asked = {folded_text(query) for query in queries}
    assert asked <= {folded_text(string) for string in log.strings}
    rest = Pool([each for each in log.strings if folded_text(each) not in asked], log.encoder)
    measured = {
        (pool is log, epsilon): _likeness(
            mechanism("comet-cmp", pool=pool, epsilon=epsilon), queries
        )
        for pool, epsilon in ((rest, 5.0), (rest, 10.0), (rest, 50.0), (log, 5.0), (log, 10.0))
    }
    np.testing.assert_allclose(measured[False, 5.0], (0.29, 0.09, 43.5, 0), atol=0.04, rtol=0.04)
    np.testing.assert_allclose(measured[False, 10.0], (0.66, 0.23, 11.9, 0), atol=0.04, rtol=0.04)
    np.testing.assert_allclose(measured[False, 50.0], (0.71, 0.25, 1.6, 0), atol=0.04, rtol=0.04)
    assert measured[True, 5.0][3] == pytest.approx(0.60, abs=0.04)
    assert measured[True, 10.0][3] > 0.98


def _likeness(chosen, queries):
    """Mean cosine, Jaccard, different strings among 50, and share that are the query itself."""
    results = list(Obfuscator(chosen, n=50, rng=1).obfuscate(queries))
    cosines, overlaps = [], []
    for result, vector in zip(results, chosen.encode(queries), strict=True):
        cosines.append(chosen.encode(result.variants) @ vector)
        own = set(result.text.lower().split())
        words = [set(variant.lower().split()) for variant in result.variants]
        overlaps += [len(own & each) / len(own | each) for each in words]
    different = np.mean([len(set(result.variants)) for result in results])
    unchanged = np.mean([result.unchanged for result in results])
    return float(np.mean(cosines)), float(np.mean(overlaps)), float(different), float(unchanged)


# The ledger


def test_the_ledger_adds_up_what_has_the_same_metric(demo):
    """cmp's metric is the encoder's alone; Mahalanobis' shape comes from the pool too."""
    smaller = Pool(demo.strings[:300], "light")

    def promise(name, pool):
        obfuscator = Obfuscator(mechanism(name, pool=pool, epsilon=2.0), n=3)
        (result,) = obfuscator.obfuscate(["skin cancer"])
        entry = Entry.of(result, obfuscator, "somewhere")
        assert entry.spent == pytest.approx(3 * 32)
        assert entry.protected == 1
        (remembered,) = replace(obfuscator, memory_key=bytes(32)).obfuscate(["skin cancer"])
        return entry.promise, remembered.word_hashes

    plain = [promise("comet-cmp", pool) for pool in (demo, smaller)]
    shaped = [promise("comet-mahalanobis", pool) for pool in (demo, smaller)]
    assert plain[0][0] == plain[1][0]
    assert shaped[0][0] != shaped[1][0]
    assert len({key for _, key in (*plain, *shaped)}) == 4


# The pool


def test_pools_are_read_from_files_of_all_kinds(tmp_path):
    wanted = ("skin cancer", "divorce lawyer", "debt")
    (tmp_path / "a.txt").write_text("skin  cancer\n\ndivorce lawyer\nskin cancer\n debt\n")
    rows = [{"query_id": str(n), "text": text} for n, text in enumerate(wanted)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "queries.jsonl").write_text(lines)
    (tmp_path / "b.jsonl").write_text(lines.replace('"query_id"', '"id"'))
    with gzip.open(tmp_path / "c.tsv.gz", "wt") as file:
        file.writelines(f"source\t{n}\t{text}\n" for n, text in enumerate(wanted))
    for source in ("a.txt", "b.jsonl", "c.tsv.gz", "."):
        pool = load_pool(tmp_path / source, "light")
        assert pool.strings == wanted
        assert pool.vectors.shape == (3, 256)
        assert pool == Pool(wanted, "light")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"\n \n", "holds no string"),
        ("a.txt", b"\xff\xfe", "line 1 .* not UTF-8"),
        ("a.jsonl", b'{"text": "x"}\n{"title": "y"}\n', 'line 2 .* needs a "text"'),
        ("a.csv", b"x\n", "neither"),
        ("a.tsv.gz", b"no gzip", "cannot read"),
    ],
)
def test_bad_pools_are_refused(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SottovoceError, match=says):
        load_pool(tmp_path / name, "light")


def test_missing_pools_are_refused(tmp_path):
    for source in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(UsageError, match=r"queries\.jsonl"):
            load_pool(source, "light")
    with pytest.raises(UsageError, match="list of strings"):
        Pool("skin cancer", "light")


def test_a_mechanism_travels_as_the_name_of_its_pool(demo, tmp_path):
    for pool in (demo, load_pool(_file(tmp_path, demo.strings[:500]), "light")):
        chosen = mechanism("comet-cmp", pool=pool)
        data = pickle.dumps(chosen)
        assert len(data) < 1000
        again = pickle.loads(data)
        assert again == chosen
        assert pickle.loads(data).pool is again.pool, "opened once a process"
    chosen = mechanism("comet-cmp", pool=load_pool(_file(tmp_path, ["one", "two"]), "light"))
    data = pickle.dumps(chosen)
    _file(tmp_path, ["one", "two", "three"])
    with pytest.raises(SottovoceError, match="changed since"):
        pickle.loads(data)


def _file(folder, strings):
    file = folder / "pool.txt"
    file.write_text("\n".join(strings))
    return file


# The commands


@pytest.fixture
def run(home):
    return lambda *arguments: as_text(run_command(*arguments, home=home, columns=100))


def test_obfuscate_and_search_with_a_pool(run, demo):
    text = "treatment for skin cancer"
    comet = ("-m", "comet-cmp", "--pool", "demo", "--encoder", "light")
    done = run("obfuscate", text, *comet, "-e", "8", "-n", "4", "-o", "jsonl")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert set(said["variants"]) <= set(demo.strings)
    assert said["spent"] == pytest.approx(4 * 8 * 16)
    done = run("search", text, *comet, "-n", "5", "--rerank", "light", "--json", "--no-ledger")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["release"] == "once"
    assert said["spent"] == pytest.approx(5 * 16)
    assert len(said["sent"]) == 5
    done = run("obfuscate", text, "-m", "comet-cmp")
    assert done.returncode == 2
    assert "--pool" in done.stderr
    assert "skin" not in done.stderr


def test_what_the_command_says_of_it(run):
    done = run("mechanisms", "comet-cmp", "--json")
    said = json.loads(done.stdout)
    assert said["guarantee"]["metric"] == "euclidean(light)"
    assert said["guarantee"]["epsilon"] == pytest.approx(16 * 5)
    assert said["facts"] == {}


# Size

LARGE = """
import json, sys
import numpy as np
from sottovoce import Obfuscator, mechanism
from sottovoce.encoders import base
from sottovoce.pools import Pool

base.TEXTS_AT_A_TIME = 1 << 14  # It waits for the disk after each such block.

class Random:
    name, dimension, fingerprint = "random", 256, "random"
    rng = np.random.default_rng(1)

    def encode(self, texts):
        rows = self.rng.standard_normal((len(texts), 256), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

def megabytes(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) >> 10

pool = Pool((f"how to get number {n} by post" for n in range(300_000)), Random()).prepare()
chosen = mechanism(sys.argv[1], pool=pool)
texts = [*pool.strings[:20], *(f"{string} soon" for string in pool.strings[:20])]
for release in ("independent", "once"):
    found = list(Obfuscator(chosen, n=int(sys.argv[2]), release=release).obfuscate(texts))
print(json.dumps({
    "strings": len(pool),
    "texts": len(found),
    "own": megabytes("RssAnon"),
    "peak": megabytes("VmHWM"),
}))
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("spec", "n"), [("comet-mahalanobis", "2"), ("cover:k=20,decoys=sensitive", "1")]
)
def test_a_pool_of_300_000_strings_takes_bounded_memory(spec, n):
    """307 MB of vectors are mapped; what the process holds of its own stays well below."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", LARGE, spec, n],
            capture_output=True,
            text=True,
            env={**os.environ, "SOTTOVOCE_HOME": home},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["strings"], said["texts"]) == (300_000, 40)
    assert said["own"] < 300
    assert said["peak"] < 1000


# The audit of whole-text mechanisms


@pytest.mark.parametrize("name", ["comet-cmp", "comet-mahalanobis"])
def test_the_audit_passes_independent_noise_and_refutes_shared_noise(name):
    from sottovoce.pools import load_pool
    from sottovoce.privacy.auditing import audit

    pool = load_pool("demo", "light")
    ours = audit(mechanism(name, pool=pool), quick=True, rng=1)
    theirs = audit(mechanism(name, pool=pool, compat="authors"), quick=True, rng=1)
    assert not ours.refutes_what_is_stated
    assert {claim.label: claim.verdict for claim in ours.claims} == {
        "stated": "NOT REFUTED",
        "published": "REFUTED",
    }
    assert _verdict(ours, "batch independence") == "NOT REFUTED"
    assert _verdict(theirs, "batch independence") == "REFUTED"
    assert theirs.claims[0].verdict == "NO CLAIM"


def test_the_audit_catches_noise_that_is_too_small():
    from sottovoce.mechanisms.comet import CometCMP
    from sottovoce.pools import load_pool
    from sottovoce.privacy.auditing import audit

    class Halved(CometCMP):
        def noise(self, draws):
            return super().noise(draws) / 2

    found = audit(Halved(load_pool("demo", "light")), quick=True, rng=1)
    assert _verdict(found, "draws follow the density") == "REFUTED"
    assert found.refutes_what_is_stated


def test_the_audit_catches_a_release_that_adds_no_noise():
    from sottovoce.mechanisms.comet import CometCMP
    from sottovoce.privacy.auditing import audit

    class Bare(CometCMP):
        def perturb(self, vectors, noise):
            return super().perturb(vectors, 0 * noise)

    found = audit(Bare(load_pool("demo", "light")), quick=True, rng=1)
    assert _verdict(found, "draws follow the density") == "REFUTED"
    assert _verdict(found, "effect of epsilon") == "REFUTED"


def _verdict(found, check):
    (verdict,) = {each.verdict for each in found.findings if each.check == check}
    return verdict


@pytest.mark.parametrize(
    "option", [["--keep", "skin"], ["--unknown", "error"], ["--protect", "all"], ["--restore-case"]]
)
def test_options_about_words_are_refused(option):
    from typer.testing import CliRunner

    from sottovoce.cli import app

    asked = ["obfuscate", "skin", "-m", "comet-cmp", "--pool", "demo", "--encoder", "light"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    refused = CliRunner().invoke(app, [*asked, *option])
    assert isinstance(refused.exception, UsageError)
    assert "is about words" in str(refused.exception)
