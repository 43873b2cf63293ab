"""The strong encoder's files as the folder of a model that a user got somewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sottovoce.encoders.strong import StrongEncoder, _folder

SETTINGS = {
    "config.json": {
        "model_type": "bert",
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "hidden_size": 384,
        "intermediate_size": 1536,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "modules.json": [
        {"idx": number, "name": str(number), "type": f"sentence_transformers.models.{kind}"}
        | {"path": "" if kind == "Transformer" else f"{number}_{kind}"}
        for number, kind in enumerate(("Transformer", "Pooling", "Normalize"))
    ],
    "sentence_bert_config.json": {"max_seq_length": 256},
    "1_Pooling/config.json": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
}


def copy_strong(folder: Path) -> Path:
    """Write them; where they are not on this machine, the test is skipped."""
    if not StrongEncoder.installed():
        pytest.skip("the strong encoder is not here: sottovoce spaces add strong")
    shutil.copytree(_folder(), folder)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for name, settings in SETTINGS.items():
        (folder / name).write_text(json.dumps(settings))
    return folder
