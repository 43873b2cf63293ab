"""Similarity of texts and releases: the published values, the edge cases, and the command."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.cli import main
from sottovoce.encoders import load_encoder
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.privacy.attacks.releases import Released, read_releases
from sottovoce.privacy.text_similarity import SimilarityMeter, bleu, jaccard, meteor, similarity

EPSILONS = ("1", "5", "10", "12.5", "15", "17.5", "20", "25", "30", "50")
PUBLISHED = {
    "CMP": (0, 0.002, 0.104, 0.279, 0.503, 0.700, 0.813, 0.901, 0.921, 0.927),
    "Mahalanobis": (0, 0.002, 0.054, 0.141, 0.281, 0.459, 0.611, 0.804, 0.885, 0.927),
    "VickreyCMP": (0, 0.002, 0.046, 0.100, 0.140, 0.157, 0.163, 0.169, 0.173, 0.192),
    "VickreyMhl": (0, 0.002, 0.026, 0.060, 0.098, 0.126, 0.145, 0.164, 0.172, 0.193),
    "CusText": (0.093, 0.390, 0.809, 0.881, 0.910, 0.922, 0.926, 0.927, 0.927, 0.927),
    "SanText": (0, 0.926, *[0.927] * 8),
    "TEM": (0, 0.997, *[1.0] * 8),
    "WBB": (0.3945,) * 10,
}

sentences = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=7).map(tuple)


def reference(shared_data, mechanism, parameter):
    folder = shared_data / "reference" / "msmarco-dl19" / mechanism
    return read_releases(folder / f"obfuscatedText_{mechanism}_{parameter}.csv.gz")


@pytest.mark.parametrize("mechanism", PUBLISHED)
def test_the_jaccard_of_the_published_releases_comes_out(shared_data, mechanism):
    meter = SimilarityMeter(["jaccard"])
    for epsilon, published in zip(EPSILONS, PUBLISHED[mechanism], strict=True):
        measured = meter.measure(reference(shared_data, mechanism, epsilon))
        assert measured.mean("jaccard") == pytest.approx(published, abs=0.002)
        assert (len(measured.ids), measured.epsilon) == (43, float(epsilon))


@pytest.fixture(scope="module")
def minilm():
    try:
        return SimilarityMeter(["semantic"], "strong")
    except SottovoceError:
        pytest.skip("the strong encoder is not here: sottovoce spaces add strong")


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "published"), [("TEM", "5", 0.999), ("SanText", "10", 0.890)]
)
def test_the_meaning_of_the_published_releases_comes_out(
    shared_data, minilm, mechanism, epsilon, published
):
    measured = minilm.measure(reference(shared_data, mechanism, epsilon))
    assert measured.mean("semantic") == pytest.approx(published, abs=0.02)
    assert measured.encoder == "strong"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "published"),
    [("CMP", "10", 0.200), ("CMP", "12.5", 0.420), ("TEM", "1", 0.024), ("WBB", "10", 0.465)],
)
def test_the_meaning_of_larger_published_releases_comes_out(
    shared_data, minilm, mechanism, epsilon, published
):
    measured = minilm.measure(reference(shared_data, mechanism, epsilon))
    assert measured.mean("semantic") == pytest.approx(published, abs=0.02)


@pytest.mark.slow
def test_the_published_value_of_aea_is_a_mean_over_variants(shared_data, minilm):
    measured = minilm.measure(reference(shared_data, "AEA", "3"))
    assert measured.mean_of_variants("semantic") == pytest.approx(0.479, abs=0.002)
    assert measured.mean("semantic") == pytest.approx(0.559, abs=0.002)


def released(text, *variants, name="1", **more):
    return Released(name, text, variants, **more)


@given(sentences, sentences)
def test_jaccard_is_symmetric_and_1_for_equal_sets_alone(a, b):
    value = jaccard(a, b)
    assert value == jaccard(b, a)
    assert 0 <= value <= 1
    assert (value == 1) == (set(a) == set(b))


def test_two_empty_texts_are_equal_and_counted_and_one_has_nothing_in_common():
    found = similarity(
        [released(" ", "", "\t", "word"), released("skin cancer", "", name="2")], encoder="light"
    )
    for measure in ("jaccard", "bleu", "meteor"):
        np.testing.assert_allclose(found.values[measure], [2 / 3, 0])
    np.testing.assert_array_equal(found.values["semantic"], 0)  # no vector, no likeness
    assert found.both_empty == 2


def test_case_is_folded_unless_it_matters():
    pair = [released("Skin CANCER Straße", "skin cancer strasse")]
    for measure in ("jaccard", "bleu"):
        assert similarity(pair, measures=[measure]).mean(measure) == 1
        assert similarity(pair, measures=[measure], fold_case=False).mean(measure) == 0


def test_the_mean_goes_over_variants_first_and_then_over_queries():
    found = similarity(
        [released("a b", "a b", "a b", "a c", "d e"), released("x", "y", name="2")],
        measures=["jaccard"],
    )
    np.testing.assert_allclose(found.values["jaccard"], [(1 + 1 + 1 / 3 + 0) / 4, 0])
    assert found.mean("jaccard") == pytest.approx(7 / 24)
    assert found.mean_of_variants("jaccard") == pytest.approx(7 / 15)
    assert list(found.counts) == [4, 1]


def test_texts_without_a_release_are_left_out_and_counted():
    found = similarity([released("a", "a"), released("b", name="2")], measures=["jaccard"])
    assert (found.mean("jaccard"), found.left_out, found.ids) == (1, 1, ("1",))
    with pytest.raises(UsageError, match="nothing was released"):
        similarity([released("b")], measures=["jaccard"])


@given(sentences)
def test_bleu_of_a_text_with_itself_is_1_however_short(text):
    assert bleu()(text, text) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "variant", "expected"),
    [
        # 4 of 5 words, 2 of 4 pairs, 1 of 3 triples; no four words: half a match of 2.
        ("a b c d e", "a b c x e", (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25),
        # All shared, but three words for five.
        ("a b c d e", "a b c", np.exp(1 - 5 / 3)),
        # One word of two, then no pair: half a match of 1.
        ("a b", "a x", (1 / 2 * 1 / 2) ** 0.5),
        ("a b c", "x y z", 0),
    ],
)
def test_bleu_by_hand(text, variant, expected):
    assert bleu()(tuple(text.split()), tuple(variant.split())) == pytest.approx(expected)


def test_meteor_by_hand():
    compare = meteor(None)
    # Equal words and stems match; three in a row are one chunk.
    assert compare(("skin", "cancers", "treated"), ("skin", "cancer", "treats")) == pytest.approx(
        1 - 0.5 * (1 / 3) ** 3
    )
    # Two of four words in two chunks: precision and recall 1/2, penalty 1/2.
    assert compare(("a", "b", "c", "d"), ("a", "x", "c", "y")) == pytest.approx(0.25)


def test_meteor_takes_synonyms_where_wordnet_is_here(wordnet):
    text, variant = ("car", "doctor"), ("automobile", "physician")
    assert meteor(None)(text, variant) == 0
    assert meteor(wordnet)(text, variant) == pytest.approx(1 - 0.5 * (1 / 2) ** 3)
    assert meteor(wordnet)(("cars",), ("automobiles",)) == meteor(wordnet)(("car",), ("car",))
    assert meteor(wordnet)(("car",), ("banana",)) == 0


def test_the_result_says_what_meteor_compared(wordnet, monkeypatch, tmp_path):
    pair = [released("car", "automobile")]
    with_synonyms = similarity(pair, measures=["meteor"])
    assert with_synonyms.meteor == "words, stems, synonyms"
    assert with_synonyms.mean("meteor") > 0
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    without = similarity(pair, measures=["meteor"])
    assert without.meteor == "words, stems"
    assert without.mean("meteor") == 0


class Counting:
    """The light encoder, and what it was asked for."""

    name, dimension, fingerprint = "light", 256, ""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return load_encoder("light").encode(texts)


def test_each_distinct_text_is_encoded_once_over_all_files(monkeypatch):
    monkeypatch.setattr("sottovoce.privacy.text_similarity.PAIRS_AT_A_TIME", 2)
    encoder = Counting()
    meter = SimilarityMeter(encoder=encoder, measures=["semantic"])
    file = [
        released("skin cancer", "skin", "skin cancer", "skin", "tumour"),
        released("tumour", "skin", "cancer", name="2"),
    ]
    meter.measure(file)
    meter.measure(file)
    assert sorted(encoder.asked) == ["cancer", "skin", "skin cancer", "tumour"]


def test_the_semantic_value_is_the_cosine():
    a, b = load_encoder("light").encode(["skin cancer", "tumour of the skin"])
    found = similarity([released("skin cancer", "tumour of the skin")], encoder="light")
    assert found.mean("semantic") == pytest.approx(float(a @ b), abs=1e-6)


def test_blocks_and_forgotten_vectors_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    words = np.array(["skin", "cancer", "treatment", "for", "the", "tumour", "lawyer", "debt"])
    file = [
        released(
            " ".join(rng.choice(words, 3)),
            *(" ".join(rng.choice(words, 3)) for _ in range(5)),
            name=str(row),
        )
        for row in range(20)
    ]
    whole = similarity(file, encoder="light")
    monkeypatch.setattr("sottovoce.privacy.text_similarity.PAIRS_AT_A_TIME", 3)
    monkeypatch.setattr("sottovoce.privacy.text_similarity.VECTORS_KEPT", 4)
    seen = []
    pieces = similarity(file, encoder="light", progress=lambda *at: seen.append(at))
    for measure in ("jaccard", "bleu", "meteor", "semantic"):
        np.testing.assert_allclose(pieces.values[measure], whole.values[measure], atol=1e-6)
    assert seen[-1][0] == seen[-1][1]
    assert len(seen) > 20


def test_the_interval_is_students():
    values = (1.0, 0.5, 0.5, 0.0)
    file = [
        released("a b", variant, name=str(row))
        for row, variant in enumerate(("a b", "a", "b", "c"))
    ]
    found = similarity(file, measures=["jaccard"])
    np.testing.assert_allclose(found.values["jaccard"], values)
    # Mean .5, deviation .408, t at .975 with 3 degrees of freedom 3.182.
    assert found.interval("jaccard") == pytest.approx((0, 1))
    reach = 0.408248 / 2 * 1.6377  # the same at .9
    assert found.interval("jaccard", 0.8) == pytest.approx((0.5 - reach, 0.5 + reach), abs=1e-4)
    assert similarity(file[:1], measures=["jaccard"]).interval("jaccard") is None


def test_no_text_is_repeated_by_the_result():
    found = similarity([released("secretword", "otherword")], encoder="light")
    assert "secretword" not in repr(found)
    said = json.dumps(found.to_dict(per_query=True))
    assert "secretword" not in said
    assert "otherword" not in said


def test_what_the_releases_do_not_share_is_not_said():
    file = [
        released("a", "b", mechanism="cmp", epsilon=1.0),
        released("a", "b", mechanism="cmp", epsilon=2.0),
    ]
    found = similarity(file, measures=["jaccard"])
    assert (found.mechanism, found.epsilon) == ("cmp", None)


def test_without_nltk_the_rest_is_measured_and_asking_for_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("sottovoce.privacy.text_similarity.find_spec", lambda name: None)
    assert list(similarity([released("a", "a")], encoder=None).values) == ["jaccard"]
    with pytest.raises(SottovoceError, match=r"sottovoce\[lab\]"):
        SimilarityMeter(["bleu"])


def test_unknown_measures_are_refused_and_not_repeated():
    with pytest.raises(UsageError, match="there are jaccard") as refused:
        SimilarityMeter(["jaccard", "secret"])
    assert "secret" not in str(refused.value)
    with pytest.raises(UsageError):
        SimilarityMeter([])
    with pytest.raises(UsageError, match="needs an encoder"):
        SimilarityMeter(["semantic"], encoder=None)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["sottovoce", *map(str, arguments)])
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return ended.value.code or 0, shown.out, shown.err

    return call


@pytest.fixture
def files(tmp_path):
    """Two files of one mechanism, the larger epsilon first, and one that says nothing of itself."""
    for name, epsilon, variant in (("first", 10, "skin cancer"), ("second", 5, "skin lawyer")):
        row = {"text": "skin cancer", "variants": [variant], "epsilon": epsilon}
        row["mechanism"] = f"vickrey-cmp:epsilon={epsilon},t=0.5"
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "third.csv").write_text("id,text,obfuscatedText\n1,skin cancer,debt\n")
    return [tmp_path / name for name in ("first.jsonl", "second.jsonl", "third.csv")]


def test_the_command_prints_a_row_a_file_by_growing_epsilon(run, files):
    code, out, _ = run("similarity", *files, "--encoder", "light")
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert code == 0
    assert [row[:4] for row in rows] == [
        ["vickrey-cmp:t=0.5", "5", "1", "0.333"],
        ["vickrey-cmp:t=0.5", "10", "1", "1.000"],
        ["third.csv", "-", "1", "0.000"],
    ]
    assert "encoder light" in out
    assert "skin" not in out


def test_the_command_speaks_to_programs(run, files):
    code, out, _ = run("similarity", *files, "--encoder", "none", "--json", "--per-query")
    said = json.loads(out)["files"]
    assert code == 0
    assert [each["file"] for each in said] == ["second.jsonl", "first.jsonl", "third.csv"]
    assert said[1]["measures"]["jaccard"] == {"mean": 1, "interval": None, "mean_of_variants": 1}
    assert said[1]["encoder"] is None
    assert "semantic" not in said[1]["measures"]
    assert said[1]["per_query"][0]["id"] == "1"


def test_the_command_draws_lines_or_histograms(run, files, tmp_path):
    for some, drawn in ((files, "lines.png"), (files[:1], "histogram.svg")):
        picture = tmp_path / drawn
        code, _, _ = run("similarity", *some, "-m", "jaccard", "--figure", picture)
        assert code == 0
        assert picture.stat().st_size > 1000


def test_wrong_use_ends_with_2_and_writes_nothing(run, files, tmp_path):
    picture = tmp_path / "out.png"
    (tmp_path / "empty.csv").touch()
    (tmp_path / "columns.csv").write_text("id,text\n1,secretword\n")
    for wrong in (
        (tmp_path / "secretword.csv",),
        (tmp_path / "empty.csv",),
        (files[0], tmp_path / "columns.csv"),
        (files[0], "-m", "secretword"),
    ):
        code, out, complaint = run("similarity", *wrong, "--figure", picture)
        assert (code, out) == (2, "")
        assert "secretword" not in complaint
    assert not picture.exists()
    assert "file 2 of 2" in run("similarity", files[0], tmp_path / "columns.csv")[2]
