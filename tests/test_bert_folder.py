"""BERT models of one's own, built from their folders, against BERT written out in numpy."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pytest
from plain_bert import HEADS, LAYERS, PIECES, PLACES, WIDTH, random_weights, states_of, write_folder
from strong_folder import copy_strong

from sottovoce.encoders import load_encoder
from sottovoce.encoders.bert_folder import BertFolder, NotReadAsBert, read_model
from sottovoce.encoders.bert_names import distance_bias
from sottovoce.errors import SottovoceError

pytest.importorskip("onnxruntime")

HAUTKREBS = [2, PIECES.index("haut"), PIECES.index("##krebs"), 3]
TEXTS = {
    "haut": [2, PIECES.index("haut"), 3],
    "hautkrebs": HAUTKREBS,
    "Haut größe": [2, PIECES.index("Haut"), PIECES.index("größe"), 3],
    "haut krebs grosse": [2, *map(PIECES.index, ("haut", "krebs", "grosse")), 3],
    "pasta": [2, 1, 3],
}
MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
CLS = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
TYPES = "sentence_transformers.models."


def modules(*kinds: str) -> list[dict]:
    paths = ["", "1_Pooling", "2_Normalize"][: len(kinds)]
    return [
        {"idx": number, "name": str(number), "type": TYPES + kind, "path": path}
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]


def expected(weights, texts=TEXTS, *, cls=False, first_place=0):
    states = [states_of(weights, ids, first_place) for ids in texts.values()]
    rows = np.array([row[0] if cls else row.mean(axis=0) for row in states])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("pooling", "cls"),
    [
        (None, False),
        (MEAN, False),
        (CLS, True),
        ({"pooling_mode": "cls"}, True),
        ({"pooling_mode": ["mean"]}, False),
    ],
)
@pytest.mark.parametrize("listed", [None, modules("Transformer", "Pooling", "Normalize")])
def test_vectors_are_those_of_the_model(tmp_path, pooling, cls, listed):
    weights = random_weights()
    encoder = load_encoder(str(write_folder(tmp_path, weights, pooling=pooling, modules=listed)))
    assert isinstance(encoder, BertFolder)
    assert encoder.dimension == WIDTH
    rows = encoder.encode(list(TEXTS))
    assert np.abs(rows - expected(weights, cls=cls)).max() < 1e-5
    assert not np.allclose(rows, expected(weights, cls=not cls), atol=1e-2)


def test_a_model_counts_its_places_from_behind_the_padding(tmp_path):
    weights = random_weights()
    folder = write_folder(tmp_path, weights, model_type="xlm-roberta", pad_token_id=1)
    rows = load_encoder(str(folder)).encode(list(TEXTS))
    assert np.abs(rows - expected(weights, first_place=2)).max() < 1e-5
    # Two places fewer are left for tokens.
    assert_cut_after(load_encoder(str(folder)), PLACES - 2)


def assert_cut_after(encoder, tokens):
    """Texts are read up to so many tokens, the two at their ends included."""
    most, longer, shorter = encoder.encode(["haut " * (tokens + more) for more in (-2, 5, -3)])
    assert np.array_equal(most, longer)
    assert np.abs(most - shorter).max() > 1e-4


DISTILBERT = {
    "encoder.layer.": "transformer.layer.",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}
MPNET = {
    "attention.self.query": "attention.attn.q",
    "attention.self.key": "attention.attn.k",
    "attention.self.value": "attention.attn.v",
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
}


def without_kinds(names: dict[str, str], prefix: str) -> tuple[dict, dict]:
    """Weights of a model that knows no kinds of tokens, as BERT's, and under other names."""
    weights = random_weights()
    kinds = np.zeros_like(weights.pop("embeddings.token_type_embeddings.weight"))
    renamed = {}
    for name, array in weights.items():
        for bert, other in names.items():
            name = name.replace(bert, other)
        renamed[prefix + name] = array
    return {**weights, "embeddings.token_type_embeddings.weight": kinds}, renamed


def test_distilbert_is_bert_under_other_names(tmp_path):
    weights, renamed = without_kinds(DISTILBERT, "distilbert.")
    folder = write_folder(
        tmp_path,
        renamed,
        model_type="distilbert",
        n_layers=LAYERS,
        n_heads=HEADS,
        activation="gelu",
    )
    rows = load_encoder(str(folder)).encode(list(TEXTS))
    assert np.abs(rows - expected(weights)).max() < 1e-5
    edit(folder, activation="relu")
    with pytest.raises(NotReadAsBert, match="activation is 'relu'"):
        read_model(folder)


def test_mpnet_adds_what_distances_say_to_attention(tmp_path):
    weights, renamed = without_kinds(MPNET, "")
    table = np.random.default_rng(7).normal(size=(32, HEADS)).astype(np.float32)
    folder = write_folder(
        tmp_path,
        {**renamed, "encoder.relative_attention_bias.weight": table},
        model_type="mpnet",
        pad_token_id=1,
    )
    # Before a token or at it: rows 0 to 15, behind it 16 to 31; single distances up to 7.
    distances = range(-12, 13)
    row = {d: min(abs(d), 8) + (abs(d) == 12) + 16 * (d > 0) for d in distances}
    texts = {**TEXTS, "haut " * 11: [2, *[PIECES.index("haut")] * 11, 3]}
    vectors = []
    for ids in texts.values():
        places = range(len(ids))
        bias = table[[[row[key - query] for key in places] for query in places]]
        states = states_of(weights, ids, first_place=2, bias=bias.transpose(2, 0, 1))
        vectors.append(states.mean(axis=0) / np.linalg.norm(states.mean(axis=0)))
    rows = load_encoder(str(folder)).encode(list(texts))
    assert np.abs(rows - np.array(vectors)).max() < 1e-5
    assert not np.allclose(rows[:5], expected(weights, first_place=2), atol=1e-2)


def test_distances_of_mpnet_widen_by_the_root_of_two():
    table = np.arange(32, dtype=np.float32)[:, None]
    behind = distance_bias(table, 200)[0, 0, 0]
    firsts = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    assert behind[0] == 0
    changes = [1 + at for at in np.flatnonzero(np.diff(behind)).tolist()]
    assert changes == firsts[1:]
    assert behind[1:].tolist() == sorted(behind[1:])
    assert (behind[1], behind[-1]) == (17, 31)
    assert np.array_equal(distance_bias(table, 200)[0, 0, :, 0][1:], behind[1:] - 16)


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [(None, PLACES), ({"max_seq_length": 8}, 8), ({"max_seq_length": 1000}, PLACES)],
)
def test_longer_texts_are_cut_where_the_folder_says(tmp_path, sentence, tokens):
    encoder = load_encoder(str(write_folder(tmp_path, random_weights(), sentence=sentence)))
    assert_cut_after(encoder, tokens)


def test_the_tokenizers_own_length_counts_where_nothing_else_is_said(tmp_path):
    folder = write_folder(tmp_path, random_weights())
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 6}')
    assert_cut_after(load_encoder(str(folder)), 6)


def test_case_is_the_tokenizers(tmp_path):
    weights = random_weights()
    cased = load_encoder(str(write_folder(tmp_path / "cased", weights)))
    lower = load_encoder(str(write_folder(tmp_path / "lower", weights, lower_case=True)))
    first = load_encoder(
        str(write_folder(tmp_path / "first", weights, sentence={"do_lower_case": True}))
    )
    assert not np.allclose(*cased.encode(["Haut", "haut"]))
    assert cased.knows(["Haut", "haut", "HAUT", "Größe"]).tolist() == [True, True, False, False]
    for encoder in (lower, first):
        assert np.array_equal(*encoder.encode(["Haut", "haut"]))
        assert encoder.knows(["Haut", "haut", "HAUT", "Größe"]).all()


def test_unknown_words_are_known_to_be(tmp_path):
    encoder = load_encoder(str(write_folder(tmp_path, random_weights())))
    known = [
        "haut",
        "hautkrebs",
        "haut krebs",
        "krebs" * 30,
        "haut pasta",
        "кожа",
        "",
        " ",
        "\u200b",
    ]
    assert encoder.knows(known).tolist() == [True] * 3 + [False] * 6
    assert encoder.knows([]).tolist() == []


def test_weights_may_be_halves_and_have_a_prefix(tmp_path):
    weights = random_weights()
    halves = {f"bert.{name}": array.astype(np.float16) for name, array in weights.items()}
    rows = load_encoder(str(write_folder(tmp_path, halves))).encode(list(TEXTS))
    rounded = {name: array.astype(np.float16) for name, array in weights.items()}
    assert np.abs(rows - expected(rounded)).max() < 1e-5


def test_a_folder_of_an_older_layout_is_read(tmp_path):
    weights = random_weights()
    listed = modules("Transformer", "Pooling")
    listed[0]["path"] = "0_Transformer"
    folder = write_folder(tmp_path, weights, pooling=CLS, modules=listed)
    (folder / "0_Transformer").mkdir()
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (folder / name).rename(folder / "0_Transformer" / name)
    rows = load_encoder(str(folder)).encode(list(TEXTS))
    assert np.abs(rows - expected(weights, cls=True)).max() < 1e-5


def test_a_model_is_known_by_all_that_decides_its_vectors(tmp_path):
    weights = random_weights()
    variants = {
        "same": {},
        "again": {},
        "cls": {"pooling": CLS},
        "cut": {"sentence": {"max_seq_length": 8}},
        "lower": {"lower_case": True},
        "epsilon": {"layer_norm_eps": 1e-5},
    }
    folders = [write_folder(tmp_path / name, weights, **kind) for name, kind in variants.items()]
    folders.append(write_folder(tmp_path / "weights", random_weights(seed=1)))
    prints = [load_encoder(str(folder)).fingerprint for folder in folders]
    assert prints[0] == prints[1]
    assert len(set(prints)) == len(prints) - 1


def test_a_folder_is_loaded_once_and_travels_by_name(tmp_path):
    folder = str(write_folder(tmp_path, random_weights()))
    encoder = load_encoder(folder)
    assert load_encoder(folder) is encoder
    assert pickle.loads(pickle.dumps(encoder)) is encoder
    assert encoder.name == folder
    assert "haut" not in repr((encoder, encoder.encode(["haut"])))


REFUSED = {
    "no config.json": lambda folder: (folder / "config.json").unlink(),
    "no model.safetensors and no tokenizer.json": lambda folder: [
        (folder / name).unlink() for name in ("model.safetensors", "tokenizer.json")
    ],
    "config.json is not JSON": lambda folder: (folder / "config.json").write_text("{"),
    "config.json holds no settings": lambda folder: (folder / "config.json").write_text("[]"),
    "model_type is not bert": lambda folder: edit(folder, model_type="t5"),
    "hidden_act is 'relu'": lambda folder: edit(folder, hidden_act="relu"),
    "position_embedding_type is 'relative_key'": lambda folder: edit(
        folder, position_embedding_type="relative_key"
    ),
    "no num_hidden_layers": lambda folder: edit(folder, num_hidden_layers=None),
    "pooling is mean and cls": lambda folder: pool(folder, dict.fromkeys(MEAN, True)),
    "pooling is max": lambda folder: pool(folder, {"pooling_mode": "max"}),
    "lists Transformer, Pooling, Dense": lambda folder: (folder / "modules.json").write_text(
        json.dumps(modules("Transformer", "Pooling", "Dense"))
    ),
    "modules.json is no list": lambda folder: (folder / "modules.json").write_text("[3]"),
}


def edit(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def pool(folder, settings):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_built_here_is_named_and_left_to_sentence_transformers(
    tmp_path, monkeypatch, reason
):
    folder = write_folder(tmp_path, random_weights())
    REFUSED[reason](folder)
    with pytest.raises(NotReadAsBert, match=reason):
        read_model(folder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SottovoceError, match=reason) as caught:
        load_encoder(str(folder))
    assert "pip install 'sottovoce[encoders]'" in str(caught.value)


def test_a_missing_onnxruntime_is_named(tmp_path, monkeypatch):
    folder = write_folder(tmp_path, random_weights())
    for package in ("onnxruntime", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SottovoceError, match=r"onnxruntime is missing.*sottovoce\[strong\]"):
        load_encoder(str(folder))


DAMAGED = {
    "model.safetensors could not be read": ("model.safetensors", b"\x10"),
    "tokenizer.json is not a tokenizer": ("tokenizer.json", b'{"version": "1.0"}'),
}


@pytest.mark.parametrize("complaint", DAMAGED)
def test_damaged_files_are_named(tmp_path, complaint):
    folder = write_folder(tmp_path, random_weights())
    name, content = DAMAGED[complaint]
    (folder / name).write_bytes(content)
    with pytest.raises(SottovoceError, match=complaint):
        load_encoder(str(folder))


def test_weights_of_too_few_layers_are_refused(tmp_path):
    folder = write_folder(tmp_path, random_weights(), num_hidden_layers=LAYERS + 1)
    with pytest.raises(SottovoceError, match=f"not hold the weights .* {LAYERS + 1} layers"):
        load_encoder(str(folder))


@pytest.fixture
def copy_of_strong(tmp_path):
    return copy_strong(tmp_path / "model")


SENTENCES = ["skin cancer", "Hautkrebs ist heilbar", "", "日本語 テスト", "🍕", "word " * 300]


def test_a_copy_of_the_strong_encoder_gives_its_vectors(copy_of_strong):
    own, strong = load_encoder(str(copy_of_strong)), load_encoder("strong")
    assert np.array_equal(own.encode(SENTENCES), strong.encode(SENTENCES))
    assert np.array_equal(own.knows(SENTENCES), strong.knows(SENTENCES))


def test_sentence_transformers_gives_the_same_vectors(copy_of_strong):
    pytest.importorskip("sentence_transformers")
    from sottovoce.encoders.sentence_transformer import SentenceTransformerEncoder

    with_torch, own = (
        SentenceTransformerEncoder(str(copy_of_strong)),
        BertFolder(str(copy_of_strong)),
    )
    assert np.abs(own.encode(SENTENCES) - with_torch.encode(SENTENCES)).max() < 1e-5
    assert np.array_equal(own.knows(SENTENCES), with_torch.knows(SENTENCES))


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta"])
@pytest.mark.parametrize("pooling", [MEAN, CLS])
def test_sentence_transformers_reads_small_models_alike(tmp_path, model_type, pooling):
    pytest.importorskip("sentence_transformers")
    from sottovoce.encoders.sentence_transformer import SentenceTransformerEncoder

    folder = write_folder(
        tmp_path,
        random_weights(),
        pooling={"word_embedding_dimension": WIDTH, **pooling},
        sentence={"max_seq_length": 8},
        modules=modules("Transformer", "Pooling", "Normalize"),
        model_type=model_type,
        # The tokenizer pads with 0; places of xlm-roberta are counted from behind that on.
        pad_token_id=0,
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "pad_token": "[PAD]",
                "unk_token": "[UNK]",
                "cls_token": "[CLS]",
                "sep_token": "[SEP]",
            }
        )
    )
    texts = [*TEXTS, "haut " * 30]
    with_torch = SentenceTransformerEncoder(str(folder))
    own = load_encoder(str(folder))
    assert isinstance(own, BertFolder)
    assert np.abs(own.encode(texts) - with_torch.encode(texts)).max() < 1e-5
    assert np.array_equal(own.knows(texts), with_torch.knows(texts))
