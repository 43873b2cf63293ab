"""Models of BERT's layers under other names: DistilBERT's and MPNet's weights, called as BERT's."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from sottovoce.types import Float32Array

RELATIVE_BIAS = "encoder.relative_attention_bias.weight"
"""MPNet's: what a distance between two places adds to attention, (distances, heads)."""
FARTHEST = 128
"""MPNet tells distances apart up to here."""

PREFIXES = ("bert.", "roberta.", "mpnet.", "distilbert.")
OTHER_NAMES = {
    # MPNet
    r"\.attention\.attn\.q\.": ".attention.self.query.",
    r"\.attention\.attn\.k\.": ".attention.self.key.",
    r"\.attention\.attn\.v\.": ".attention.self.value.",
    r"\.attention\.attn\.o\.": ".attention.output.dense.",
    r"\.attention\.LayerNorm\.": ".attention.output.LayerNorm.",
    # DistilBERT
    r"^transformer\.layer\.": "encoder.layer.",
    r"\.attention\.q_lin\.": ".attention.self.query.",
    r"\.attention\.k_lin\.": ".attention.self.key.",
    r"\.attention\.v_lin\.": ".attention.self.value.",
    r"\.attention\.out_lin\.": ".attention.output.dense.",
    r"\.sa_layer_norm\.": ".attention.output.LayerNorm.",
    r"\.ffn\.lin1\.": ".intermediate.dense.",
    r"\.ffn\.lin2\.": ".output.dense.",
    r"\.output_layer_norm\.": ".output.LayerNorm.",
}


def called_as_bert(weights: Mapping[str, Float32Array]) -> dict[str, Float32Array]:
    """The weights under BERT's names, without the name that some files put before all of them."""
    return {_bert_name(name): array for name, array in weights.items()}


def _bert_name(name: str) -> str:
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    for pattern, replacement in OTHER_NAMES.items():
        name = re.sub(pattern, replacement, name)
    return name


def place_vectors(weights: Mapping[str, Float32Array]) -> Float32Array:
    """What each place adds to its token, and that a text is one sentence, where a model tells."""
    places = weights["embeddings.position_embeddings.weight"]
    kinds = weights.get("embeddings.token_type_embeddings.weight")
    return places if kinds is None else places + kinds[0]


def distance_bias(table: Float32Array, places: int) -> Float32Array:
    """What each two places add to attention, (1, heads, places, places).

    Half of the table's rows are for what comes before, half for what comes after. Half of these are
    for single distances, the others for ranges that widen by equal factors up to the farthest.
    """
    one_side = len(table) // 2
    single = one_side // 2
    offsets = np.arange(places)[None, :] - np.arange(places)[:, None]
    distances = np.abs(offsets)
    # In float32, as the published model rounds it.
    factor = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(single))
    far = single + (factor / np.float32(np.log(FARTHEST / single)) * (one_side - single)).astype(
        int
    )
    rows = np.where(distances < single, distances, np.minimum(far, one_side - 1))
    rows = rows + np.where(offsets > 0, one_side, 0)
    return np.ascontiguousarray(table[rows].transpose(2, 0, 1)[None])
