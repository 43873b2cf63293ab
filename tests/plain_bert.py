"""BERT written out in numpy, text by text, and small models of it in folders: an oracle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from scipy.special import erf, softmax
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

WIDTH, HEADS, LAYERS, PLACES, EPSILON = 12, 3, 2, 20, 1e-6
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "haut", "Haut", "##krebs", "krebs", "größe", "grosse"]


def random_weights(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def dense(name: str, rows: int, columns: int) -> dict[str, np.ndarray]:
        weight = rng.normal(size=(rows, columns)) / np.sqrt(columns)
        return {f"{name}.weight": weight, f"{name}.bias": rng.normal(size=rows) / 10}

    def norm(name: str) -> dict[str, np.ndarray]:
        weight, bias = 1 + rng.normal(size=WIDTH) / 10, rng.normal(size=WIDTH) / 10
        return {f"{name}.weight": weight, f"{name}.bias": bias}

    weights = {
        "embeddings.word_embeddings.weight": rng.normal(size=(len(PIECES), WIDTH)),
        "embeddings.position_embeddings.weight": rng.normal(size=(PLACES, WIDTH)),
        "embeddings.token_type_embeddings.weight": rng.normal(size=(2, WIDTH)),
        **norm("embeddings.LayerNorm"),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            weights |= dense(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
        weights |= dense(f"{layer}.attention.output.dense", WIDTH, WIDTH)
        weights |= norm(f"{layer}.attention.output.LayerNorm")
        weights |= dense(f"{layer}.intermediate.dense", 4 * WIDTH, WIDTH)
        weights |= dense(f"{layer}.output.dense", WIDTH, 4 * WIDTH)
        weights |= norm(f"{layer}.output.LayerNorm")
    return {name: array.astype(np.float32) for name, array in weights.items()}


def states_of(
    weights: dict[str, np.ndarray],
    ids: list[int],
    first_place: int = 0,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """The last layer's states of one text, in float64; ``bias`` is added to attention."""
    exact = {name: array.astype(np.float64) for name, array in weights.items()}

    def dense(states: np.ndarray, name: str) -> np.ndarray:
        return states @ exact[f"{name}.weight"].T + exact[f"{name}.bias"]

    def normalized(states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        return scaled * exact[f"{name}.weight"] + exact[f"{name}.bias"]

    places = exact["embeddings.position_embeddings.weight"][first_place : first_place + len(ids)]
    kind = exact["embeddings.token_type_embeddings.weight"][0]
    states = normalized(
        exact["embeddings.word_embeddings.weight"][ids] + places + kind, "embeddings.LayerNorm"
    )
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            dense(states, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")
        )
        seen = []
        for head in range(HEADS):
            columns = slice(head * size, (head + 1) * size)
            scores = query[:, columns] @ key[:, columns].T / np.sqrt(size)
            scores += 0 if bias is None else bias[head]
            seen.append(softmax(scores, axis=1) @ value[:, columns])
        seen = dense(np.concatenate(seen, axis=1), f"{layer}.attention.output.dense")
        states = normalized(states + seen, f"{layer}.attention.output.LayerNorm")
        inner = dense(states, f"{layer}.intermediate.dense")
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
        inner = dense(inner, f"{layer}.output.dense")
        states = normalized(states + inner, f"{layer}.output.LayerNorm")
    return states


def write_folder(
    folder: Path,
    weights: dict[str, np.ndarray],
    *,
    pooling: dict | None = None,
    sentence: dict | None = None,
    modules: list[dict] | None = None,
    lower_case: bool = False,
    **config: object,
) -> Path:
    """A model's files as their publishers write them; the tokenizer knows ``PIECES`` alone."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    tokenizer = Tokenizer(
        WordPiece({piece: number for number, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = BertNormalizer(lowercase=lower_case, strip_accents=False)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # Publishers leave padding on; it must change nothing.
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "config.json": {
            "model_type": "bert",
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "layer_norm_eps": EPSILON,
            "hidden_act": "gelu",
            "hidden_size": WIDTH,
            "intermediate_size": 4 * WIDTH,
            "max_position_embeddings": PLACES,
            "type_vocab_size": 2,
            "vocab_size": len(PIECES),
            **config,
        },
        "1_Pooling/config.json": pooling,
        "sentence_bert_config.json": sentence,
        "modules.json": modules,
    }
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for name, content in settings.items():
        if content is not None:
            (folder / name).write_text(json.dumps(content))
    return folder
