"""Encoders described in a file: vectors of any length, two towers; who uses them, and how."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from plain_bert import PIECES, WIDTH, random_weights, states_of, write_folder
from strong_folder import copy_strong

from sottovoce import mechanism
from sottovoce.collections import Document
from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import at_unit_length, has_unit_length, query_side
from sottovoce.engines.dense import Dense
from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.comet import ANY_LENGTH, ANY_TWO
from sottovoce.pools import Pool
from sottovoce.privacy import attack, audit
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.text_similarity import similarity
from sottovoce.randomness import Draws
from sottovoce.search.reranking import EncoderReranker

pytest.importorskip("onnxruntime")

WORDS = ["haut", "Haut", "krebs", "größe", "grosse"]
STRINGS = [*WORDS, *(f"{a} {b}" for a in WORDS for b in WORDS if a != b), "haut haut haut krebs"]
CLS = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
SEEDS = {"documents": 0, "queries": 1}


@pytest.fixture
def home(tmp_path_factory, monkeypatch):
    """A cache of its own."""
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    """Documents by the mean of one model's states, queries by the first state of another's."""
    folder = tmp_path_factory.mktemp("towers")
    write_folder(folder / "documents", random_weights(SEEDS["documents"]))
    write_folder(folder / "queries", random_weights(SEEDS["queries"]), pooling=CLS)
    return load_encoder(described(folder))


def described(folder: Path, **settings: str) -> str:
    content = {"documents": '"documents"', "queries": '"queries"', "unit_length": "false"}
    lines = [f"{key} = {value}" for key, value in {**content, **settings}.items() if value]
    file = folder / f"encoder{len(list(folder.iterdir()))}.toml"
    file.write_text("\n".join(lines))
    return str(file)


def plain(text: str, side: str) -> np.ndarray:
    states = states_of(
        random_weights(SEEDS[side]), [2, *(PIECES.index(word) for word in text.split()), 3]
    )
    return states.mean(axis=0) if side == "documents" else states[0]


def test_vectors_keep_their_lengths_and_each_side_has_its_tower(towers):
    documents = np.array([plain(text, "documents") for text in STRINGS])
    queries = np.array([plain(text, "queries") for text in STRINGS])
    assert np.abs(towers.encode(STRINGS) - documents).max() < 1e-5
    assert np.abs(query_side(towers).encode(STRINGS) - queries).max() < 1e-5
    lengths = np.linalg.norm(documents, axis=1)
    assert lengths.max() > 1.2 * lengths.min()
    assert not has_unit_length(towers)
    assert np.allclose(np.linalg.norm(at_unit_length(towers).encode(STRINGS), axis=1), 1)
    assert np.array_equal(towers.encode(["", "haut"])[0], np.zeros(WIDTH))


def test_one_model_without_its_lengths_cut_off_and_one_with(tmp_path):
    weights = random_weights()
    write_folder(tmp_path / "documents", weights)
    raw = load_encoder(described(tmp_path, queries=""))
    unit = load_encoder(described(tmp_path, queries="", unit_length=""))
    ordinary = load_encoder(str(tmp_path / "documents"))
    assert np.array_equal(unit.encode(STRINGS), ordinary.encode(STRINGS))
    norms = np.linalg.norm(raw.encode(STRINGS), axis=1, keepdims=True)
    assert np.allclose(raw.encode(STRINGS) / norms, ordinary.encode(STRINGS), atol=1e-6)
    assert np.array_equal(query_side(raw).encode(STRINGS), raw.encode(STRINGS))
    assert len({raw.fingerprint, unit.fingerprint, ordinary.fingerprint}) == 3
    assert pickle.loads(pickle.dumps(raw)) is raw


def test_dense_search_and_re_ranking_go_by_inner_products_of_the_two_towers(home, towers):
    documents = np.array([plain(text, "documents") for text in STRINGS])
    engine = Dense([Document(str(at), "", text) for at, text in enumerate(STRINGS)], towers)
    reranker = EncoderReranker(towers)
    cosines_differ = False
    for query in STRINGS:
        products = documents @ plain(query, "queries")
        (hits,) = engine.search([query], len(STRINGS))
        assert [int(hit.doc_id) for hit in hits] == np.argsort(-products).tolist()
        assert np.allclose([hit.score for hit in hits], np.sort(products)[::-1], atol=1e-4)
        assert np.allclose(reranker.scores(query, STRINGS), products, atol=1e-4)
        cosines = products / np.linalg.norm(documents, axis=1)
        cosines_differ |= np.argsort(-cosines).tolist() != np.argsort(-products).tolist()
    assert cosines_differ


@pytest.mark.parametrize("name", ["comet-cmp", "comet-mahalanobis"])
def test_comet_moves_the_query_and_releases_the_largest_product(home, towers, name):
    comet = mechanism(name, pool=Pool(STRINGS, towers), epsilon=2)
    texts = ["haut krebs", "größe"]
    noise = comet.noise(Draws([(np.random.default_rng(5), 40)])).reshape(2, 20, WIDTH)
    points = np.array([plain(text, "queries") for text in texts])[:, None] + noise
    documents = np.array([plain(text, "documents") for text in comet.pool.strings])
    expected = (points.reshape(-1, WIDTH) @ documents.T).argmax(axis=1)
    found = comet.pool.best(comet.perturb(comet.encode(texts), noise), 1)[:, 0]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", ["comet-cmp", "comet-mahalanobis"])
def test_the_promise_is_the_metrics_alone_where_vectors_have_any_length(home, towers, name):
    comet = mechanism(name, pool=Pool(STRINGS, towers), epsilon=2)
    guarantee = comet.guarantee
    assert guarantee.notion == "metric"
    assert guarantee.epsilon == pytest.approx(2 * np.sqrt(WIDTH))
    assert ANY_LENGTH in guarantee.caveats
    assert ANY_TWO not in comet.facts()
    assert not any("length 1" in caveat for caveat in guarantee.caveats)
    # Whatever the lengths, no point tells two texts apart by more than budget times distance.
    noise = comet.noise(Draws([(np.random.default_rng(6), 4000)]))
    one, other = comet.encode(["haut haut haut krebs", "Haut"]).astype(np.float64)
    ratios = comet.log_density(noise) - comet.log_density(noise + one - other)
    (distance,) = comet.distances(["haut haut haut krebs"], ["Haut"])
    assert np.abs(ratios).max() <= comet.budget * distance * (1 + 1e-9)
    assert np.abs(ratios).max() > 0.6 * comet.budget * distance


def test_encoders_of_length_1_keep_their_bound_for_any_two_texts(home, tmp_path):
    write_folder(tmp_path / "documents", random_weights())
    comet = mechanism("comet-cmp", pool=Pool(STRINGS, str(tmp_path / "documents")), epsilon=2)
    assert comet.facts() == {ANY_TWO: pytest.approx(4 * np.sqrt(WIDTH))}
    assert ANY_LENGTH not in comet.guarantee.caveats


def test_the_audit_does_not_refute_comet_with_two_towers(home, towers):
    comet = mechanism("comet-cmp", pool=Pool(STRINGS, towers), epsilon=1)
    assert not audit(comet, quick=True, rng=1).refutes_what_is_stated


def test_attacks_by_cosine_work_and_the_one_that_cannot_is_named(home, towers):
    comet = mechanism("comet-cmp", pool=Pool(STRINGS, towers), epsilon=50)
    releases = [Released("1", "haut krebs", ("haut krebs", "haut krebs"))]
    log = QueryLog(STRINGS)
    report = attack(releases, mechanism=comet, log=log, encoders=[towers], rng=0)
    assert "length 1" in report.not_tried["aligned"]
    by_encoder = [made for _, made in report.inferences if made.attack == towers.name]
    assert [made.queries[0].rank for made in by_encoder] == [1, 1]
    measured = similarity(releases, measures=["semantic"], encoder=towers)
    assert measured.mean("semantic") == pytest.approx(1, abs=1e-6)


def test_subjects_of_a_pool_need_unit_length(home, towers):
    with pytest.raises(SottovoceError, match="unit length"):
        Pool(STRINGS, towers).subjects(3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"documents": ""}, "does not describe an encoder"),
        ({"lenght": "1"}, "does not describe an encoder"),
        ({"unit_length": '"no"'}, "does not describe an encoder"),
        ({"queries": '"narrow"'}, "they do not belong together"),
        ({"documents": '"light"', "queries": ""}, "length 1 only"),
    ],
)
def test_a_wrong_description_is_refused_with_advice(tmp_path, settings, says):
    weights = random_weights()
    write_folder(tmp_path / "documents", weights)
    write_folder(tmp_path / "queries", weights)
    if "narrow" in settings.get("queries", ""):
        settings = {**settings, "queries": '"light"', "unit_length": ""}
    with pytest.raises(SottovoceError, match=says):
        load_encoder(described(tmp_path, **settings))


def test_no_file_and_no_toml(tmp_path):
    with pytest.raises(SottovoceError, match="check the path"):
        load_encoder(str(tmp_path / "nothing.toml"))
    (tmp_path / "wrong.toml").write_text("documents = ")
    with pytest.raises(SottovoceError, match="is not TOML"):
        load_encoder(str(tmp_path / "wrong.toml"))


def test_a_published_model_by_two_poolings(tmp_path):
    copy_strong(tmp_path / "documents")
    queries = copy_strong(tmp_path / "queries")
    (queries / "1_Pooling").mkdir(exist_ok=True)
    (queries / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    towers = load_encoder(described(tmp_path))
    texts = ["skin cancer", "how to make pasta", "melanoma of the skin"]
    raw = towers.encode(texts)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    assert np.allclose(raw / lengths, load_encoder("strong").encode(texts), atol=1e-5)
    asked = query_side(towers).encode(texts)
    assert not np.allclose(asked, raw, atol=0.1)
    scores = EncoderReranker(towers).scores("skin cancer", texts)
    assert np.allclose(scores, raw @ asked[0], atol=1e-3)
