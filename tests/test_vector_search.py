"""Private search in stores of vectors: counted first, ordered by the true vector, deep enough."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from cover_cases import in_company
from scipy.stats import binom

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import demo_log, load_collection
from sottovoce.encoders import load_encoder
from sottovoce.engines import choose_vector_store
from sottovoce.engines.base import EngineError
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError
from sottovoce.ledger import BudgetError, DamagedLedgerError, Entry, Ledger, OtherCompanyError
from sottovoce.obfuscation.vectors import VectorNoise
from sottovoce.pools import load_pool
from sottovoce.search import PrivateVectorSearch, load_reranker, promise_depth
from sottovoce.search.vector_boundary import VectorBoundary
from sottovoce.search.vector_depth import NEVER, DepthPromise, order_statistic

QUERY = "treatment for skin cancer"


@pytest.fixture(scope="module")
def store(home):
    return choose_vector_store("vectors:light", load_collection("demo").documents)


@pytest.fixture(scope="module")
def noise():
    return VectorNoise(load_encoder("light"), 60.0)


class Recording:
    """A store that notes what it is asked, and how much the ledger had counted by then."""

    remote = True
    metric = "inner"
    name, made_by = "recording", "light"

    def __init__(self, store, ledger=None, fails=None):
        self.store, self.ledger, self.fails = store, ledger, fails
        self.asked, self.counted = [], []

    def nearest(self, vector, depth):
        self.asked.append(vector)
        if self.ledger is not None:
            self.counted.append(len(self.ledger.entries()))
        if self.fails is not None:
            raise self.fails
        return self.store.nearest(vector, depth)


@pytest.fixture
def ledger(memory_disk):
    return Ledger.open(memory_disk / "ledger")


def test_what_is_inside_comes_in_the_order_of_the_true_vector(store, noise):
    search = PrivateVectorSearch(noise, store, depth=718)
    result = search.search(QUERY)
    best = store.nearest(noise.encode([QUERY])[0], 10)
    assert [hit.doc_id for hit in result.hits] == [near.hit.doc_id for near in best]
    assert [hit.score for hit in result.hits] == pytest.approx([near.hit.score for near in best])
    assert result.fetched == 718
    assert result.reranker == "true vector"
    assert result.spent == 60
    by_words = PrivateVectorSearch(noise, store, load_reranker("bm25"), depth=718).search(QUERY)
    assert {"skin", "cancer"} & set(by_words.hits[0].snippet.lower().split())
    assert result.to_dict()["guarantee"]["metric"] == "euclidean(light)"
    assert QUERY not in repr(result)


def test_a_query_that_left_in_company_does_not_leave_as_a_vector(store, noise, ledger):
    cover = Obfuscator(mechanism("cover:k=5", pool=load_pool("demo", "light")))
    remembering = replace(cover, memory_key=ledger.memory_key())
    ledger.charge(Entry.of(next(remembering.obfuscate([QUERY])), cover, "a stranger"))
    elsewhere = Recording(store)
    with pytest.raises(OtherCompanyError):
        PrivateVectorSearch(noise, elsewhere, ledger=ledger, depth=50).search(QUERY)
    assert elsewhere.asked == []
    assert PrivateVectorSearch(noise, store, ledger=ledger, depth=50).search(QUERY).hits


def test_a_vector_that_was_only_counted_has_not_left(store, noise, ledger):
    search = PrivateVectorSearch(noise, Recording(store), ledger=ledger, depth=50)
    counted = search.count(QUERY)
    ledger.charge(in_company(QUERY), leaving=False)
    search.send(counted)
    with pytest.raises(OtherCompanyError):
        ledger.charge(in_company(QUERY), leaving=False)


def test_one_noisy_vector_leaves_after_it_was_counted_and_the_same_one_again(store, noise, ledger):
    remote = Recording(store, ledger)
    search = PrivateVectorSearch(noise, remote, ledger=ledger, depth=50)
    first, again = search.search(QUERY), search.search(QUERY.title())
    assert remote.counted == [1, 2]
    assert [first.recalled, again.recalled] == [False, True]
    assert [first.spent, again.spent] == [60, 0]
    assert (remote.asked[0] == remote.asked[1]).all()
    assert first.sent == tuple(remote.asked[0].tolist())
    (total,) = ledger.spent()
    assert (total.nats, total.metric, total.space) == (60, "euclidean(light)", "light")
    true = noise.encode([QUERY])[0]
    assert np.linalg.norm(remote.asked[0] - true) > 2
    fresh = PrivateVectorSearch(noise, remote, ledger=ledger, fresh=True).search(QUERY)
    assert fresh.fresh
    assert fresh.spent == 60
    assert (remote.asked[2] != remote.asked[0]).any()


def test_nothing_is_sent_if_the_ledger_refuses_or_is_damaged(store, noise, ledger):
    remote = Recording(store)
    search = PrivateVectorSearch(noise, remote, ledger=ledger)
    ledger.set_budget(per_text=59.0, total=None)
    with pytest.raises(BudgetError) as caught:
        search.search(QUERY)
    assert "cancer" not in str(caught.value)
    ledger.set_budget(None, None)
    (ledger.folder / "ledger.db").write_bytes(b"no ledger")
    with pytest.raises(DamagedLedgerError):
        search.search(QUERY)
    assert remote.asked == []


def test_nothing_is_sent_if_the_text_cannot_be_encoded(store, noise):
    class Broken:
        name, dimension, exact_batches, fingerprint = "broken", 256, True, "broken"

        def encode(self, texts):
            raise RuntimeError(texts[0])

        def knows(self, texts):
            return np.ones(len(texts), dtype=bool)

    remote = Recording(store)
    with pytest.raises(SottovoceError) as caught:
        PrivateVectorSearch(VectorNoise(Broken(), 60.0), remote).search(QUERY)
    assert "cancer" not in str(caught.value)
    with pytest.raises(UsageError, match="something to search for"):
        PrivateVectorSearch(noise, remote).search("  ")
    assert remote.asked == []


@pytest.mark.parametrize("failure", [EngineError("recording is gone"), OSError(QUERY)])
def test_a_store_that_fails_is_counted_and_another_try_costs_nothing(store, noise, ledger, failure):
    broken = Recording(store, fails=failure)
    with pytest.raises(EngineError) as caught:
        PrivateVectorSearch(noise, broken, ledger=ledger).search(QUERY)
    said = f"{caught.value!r}{caught.value.__cause__!r}"
    assert "counted (60 nats)" in said
    assert "another try costs nothing" in said
    assert "cancer" not in said
    assert PrivateVectorSearch(noise, store, ledger=ledger).search(QUERY).spent == 0


def test_the_boundary_lets_no_odd_vector_through(store, noise):
    boundary = VectorBoundary(store)
    for vector in (np.full(256, np.nan, np.float32), np.zeros((2, 2), np.float32), np.zeros(256)):
        with pytest.raises(SottovoceError, match="nothing was sent"):
            boundary.check(vector)
    with pytest.raises(UsageError, match="10,000 documents"):
        PrivateVectorSearch(noise, store, depth=0)
    with pytest.warns(PrivacyWarning, match="protects nobody"):
        PrivateVectorSearch(noise, Recording(store), rng=1)


# How deep to ask


def test_the_promised_depth_holds_for_other_queries_of_the_kind(store):
    noise = VectorNoise(load_encoder("light"), 250.0)
    log = [demo_log()[at] for at in np.random.default_rng(0).permutation(5000)[:160]]
    promise = promise_depth(store, noise, log[:60], deepest=718, rng=1)
    depth = promise.depth(0.8)
    assert 10 < depth < 700
    others = promise_depth(store, noise, log[60:], deepest=718, rng=2)
    inside = np.mean([reach <= depth for reach in others.reaches])
    assert inside > 0.8 - 2 * math.sqrt(0.8 * 0.2 / 100)
    # The depth is no larger than it has to be, and a tenth of it keeps no such promise.
    assert inside < 0.98
    assert np.mean([reach <= depth / 10 for reach in others.reaches]) < 0.5
    assert promise.inside(depth) <= inside
    assert promise.inside(718) > 0.95
    for text, reach in zip(log[:5], promise.reaches, strict=False):
        best = {near.hit.doc_id for near in store.nearest(noise.encode([text.lower()])[0], 10)}
        assert len(best) == 10
        assert 10 <= reach <= 718


@pytest.mark.parametrize(("m", "share"), [(29, 0.9), (100, 0.9), (100, 0.8), (59, 0.95)])
def test_the_order_statistic_keeps_its_confidence_for_any_law(m, share):
    place = order_statistic(m, share, 0.95)
    assert binom.sf(place - 1, m, share) <= 0.05
    assert place == 1 or binom.sf(place - 2, m, share) > 0.05
    rng = np.random.default_rng(m)
    smooth = np.sort(rng.random((4000, m)), axis=1)[:, place - 1]
    assert (smooth < share).mean() < 0.065
    # A law with few values: F at the order statistic falls short no more often.
    dice = np.sort(rng.integers(1, 7, (4000, m)), axis=1)[:, place - 1]
    assert (dice / 6 < share).mean() < 0.065


def test_too_few_public_queries_promise_nothing(store, noise):
    with pytest.raises(UsageError, match="needs 29 public queries, and there are 28"):
        order_statistic(28, 0.9, 0.95)
    with pytest.raises(UsageError, match="between 0 and 1"):
        order_statistic(28, 1.0, 0.95)
    with pytest.raises(UsageError, match="give public queries"):
        promise_depth(store, noise, [])
    with pytest.raises(UsageError, match="ask deeper"):
        promise_depth(store, noise, ["x"], deepest=5)


def test_a_promise_is_kept_in_a_file_without_any_query(tmp_path, noise):
    promise = DepthPromise("s", noise.made_with, noise.spec, 10, 50, (12.0, NEVER, 30.0))
    promise.write(tmp_path / "promise.json")
    assert DepthPromise.read(tmp_path / "promise.json") == promise
    promise.check("s", noise)
    for engine, other in (("t", noise), ("s", VectorNoise(noise.encoder, 61.0))):
        with pytest.raises(UsageError, match="another store, encoder or epsilon"):
            promise.check(engine, other)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="no promise"):
        DepthPromise.read(tmp_path / "other.json")
    assert DepthPromise("s", "e", "m", 10, 50, (NEVER,) * 40).depth() is None
