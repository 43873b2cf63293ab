"""A causal language model on this machine, by torch and transformers; never fetched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce.errors import SottovoceError, need
from sottovoce.types import Float64Array

GGUF = ".gguf"


class CausalModel:
    """The model in a folder as its publisher writes it, or in a GGUF file."""

    def __init__(self, path: Path | str) -> None:
        place = Path(path).expanduser()
        os.environ.update(dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"))
        why = "a language model needs transformers and torch"
        transformers = need("transformers", "rewriting", why)
        self._torch = need("torch", "rewriting", why)
        is_file = place.suffix == GGUF
        folder = str(place.parent if is_file else place)
        chosen = {"gguf_file": place.name} if is_file else {}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, **chosen
            )
            self._model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, **chosen
            ).eval()
        except Exception as error:
            raise SottovoceError(
                f"{place.name} could not be read as a causal language model "
                f"({type(error).__name__}): give its folder, or a GGUF file"
            ) from None
        self.name = place.name
        self.end = int(self._tokenizer.eos_token_id)

    def __repr__(self) -> str:
        return f"CausalModel({self.name})"

    def tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text)["input_ids"])

    def logits(self, tokens: Sequence[int]) -> Float64Array:
        with self._torch.inference_mode():
            states = self._model(self._torch.tensor([list(tokens)])).logits[0, -1]
        return np.asarray(states.float().numpy(), dtype=np.float64)

    def text(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))
