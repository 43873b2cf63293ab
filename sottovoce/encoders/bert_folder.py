"""A BERT model of one's own: a folder as its publisher, or sentence-transformers, writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sottovoce.encoders.bert import BertEncoder, BertModel, Pooling, onnx_is_here
from sottovoce.errors import SottovoceError
from sottovoce.files import parse_json

WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
SENTENCE, TOKENIZING = "sentence_bert_config.json", "tokenizer_config.json"
MODULES = "modules.json"

PLACES_AFTER_PADDING = {
    **dict.fromkeys(("bert", "distilbert"), False),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), True),
}
"""Models of BERT's layers, and whether places are counted from behind the padding's number on."""
MODULES_READ = ["Transformer", "Pooling", "Normalize"]
POOLING_MODES: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
}
"""How older files say what newer ones call ``pooling_mode``."""


class NotReadAsBert(SottovoceError):
    """A folder holds something that is not built here; the message says what."""


class BertFolder(BertEncoder):
    """The model in a folder.

    It holds ``model.safetensors``, ``tokenizer.json`` and ``config.json``. Where
    sentence-transformers wrote it, ``modules.json`` and the files it names say how states are
    pooled and where texts are cut; otherwise it is the mean over all places that the model has.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, read_model(Path(name).expanduser()))


def read_model(folder: Path) -> BertModel:
    """What the files of a folder say about the model in it.

    Raises NotReadAsBert where it is no BERT model, or has parts that are not built here.
    """
    if not onnx_is_here():
        raise NotReadAsBert("the package onnxruntime is missing (pip install 'sottovoce[strong]')")
    transformer, pooling = _modules(folder)
    missing = [name for name in (WEIGHTS, TOKENIZER, CONFIG) if not (transformer / name).is_file()]
    if missing:
        raise NotReadAsBert(f"it has no {' and no '.join(missing)}")
    config, sentence = _read(transformer / CONFIG), _read(transformer / SENTENCE)
    kind = config.get("model_type")
    if kind not in PLACES_AFTER_PADDING:
        raise NotReadAsBert(f"its model_type is not {' or '.join(PLACES_AFTER_PADDING)}")
    _refuse_variants(config)
    places = _number(config, "max_position_embeddings")
    # Where nothing is said, publishers of tokenizers write a very large number.
    cut = sentence.get("max_seq_length") or _read(transformer / TOKENIZING).get("model_max_length")
    settings_files = (
        *(transformer / name for name in (CONFIG, SENTENCE, TOKENIZING)),
        *(folder / MODULES, pooling),
    )
    return BertModel(
        weights=transformer / WEIGHTS,
        tokenizer=transformer / TOKENIZER,
        layers=_number(config, "n_layers" if kind == "distilbert" else "num_hidden_layers"),
        heads=_number(config, "n_heads" if kind == "distilbert" else "num_attention_heads"),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        pooling=_pooling(_read(pooling)),
        most_tokens=min(places, int(cut or places)),
        first_place=_number(config, "pad_token_id") + 1 if PLACES_AFTER_PADDING[kind] else 0,
        lower_case=bool(sentence.get("do_lower_case")),
        settings_files=tuple(file for file in settings_files if file.is_file()),
    )


def _modules(folder: Path) -> tuple[Path, Path]:
    """The folder of the transformer itself, and the file that says how its states are pooled."""
    if not (folder / MODULES).is_file():
        return folder, folder / "1_Pooling" / CONFIG
    modules = _json(folder / MODULES)
    try:
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        paths = [folder / module["path"] for module in modules]
    except (TypeError, KeyError, AttributeError):
        raise NotReadAsBert(f"its {MODULES} is no list of modules") from None
    if kinds not in (MODULES_READ, MODULES_READ[:2]):
        raise NotReadAsBert(f"its {MODULES} lists {', '.join(kinds)}")
    return paths[0], paths[1] / CONFIG


def _refuse_variants(config: dict[str, Any]) -> None:
    """Refuse what would give other vectors than the published ones."""
    expected = {
        **dict.fromkeys(("hidden_act", "activation"), "gelu"),
        "position_embedding_type": "absolute",
    }
    for setting, value in expected.items():
        if config.get(setting, value) != value:
            raise NotReadAsBert(f"its {setting} is {config[setting]!r}, not {value!r}")


def _pooling(config: dict[str, Any]) -> Pooling:
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        modes = [modes] if isinstance(modes, str) else list(modes)
    else:
        switched_on = [name for name, value in config.items() if "pooling_mode" in name and value]
        modes = [POOLING_MODES.get(name, name) for name in switched_on] or ["mean"]
    if modes not in (["mean"], ["cls"]):
        raise NotReadAsBert(f"its pooling is {' and '.join(map(str, modes))}, not mean or cls")
    pooling: Pooling = modes[0]
    return pooling


def _number(config: dict[str, Any], setting: str) -> int:
    value = config.get(setting)
    if not isinstance(value, int):
        raise NotReadAsBert(f"its {CONFIG} has no {setting}")
    return value


def _read(file: Path) -> dict[str, Any]:
    """The settings in a file; none where there is no such file."""
    settings = _json(file) if file.is_file() else {}
    if not isinstance(settings, dict):
        raise NotReadAsBert(f"its {file.name} holds no settings")
    return settings


def _json(file: Path) -> Any:
    try:
        return parse_json(file.read_text(encoding="utf-8"))
    except ValueError:
        raise NotReadAsBert(f"its {file.name} is not JSON") from None
