"""Each integration: an extra, a page, an example that runs, and a word on what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sottovoce.collections import load_collection
from sottovoce.spaces.store import SpaceWriter

ROOT = Path(__file__).parents[1]
PARTS = {
    # page: package, extra, module, example, what makes the example quick
    "pyterrier": (
        "pyterrier", "pyterrier", "pyterrier", "pyterrier_experiment",
        {"QUERIES": 2, "SPACE": "small"},
    ),
    "presidio": ("presidio_anonymizer", "presidio", "presidio", "presidio_operator", {}),
    "spacy": ("spacy", "spacy", "spacy", "spacy_component", {}),
    "scikit-learn": (
        "sklearn", "sklearn", "scikit_learn", "scikit_learn_pipeline",
        {"EPSILONS": (10.0,), "EACH": 3},
    ),
    "langchain": ("langchain_core", "langchain", "langchain", "langchain_retriever", {}),
    "datasets": ("datasets", "datasets", None, "datasets_map", {}),
}  # fmt: skip


@pytest.mark.parametrize("page", PARTS)
def test_there_is_an_extra_and_a_page_that_names_it(page):
    _, extra, module, example, _ = PARTS[page]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in extras["optional-dependencies"]
    text = (ROOT / "docs" / "integrations" / f"{page}.md").read_text()
    assert f"pip install 'sottovoce[{extra}]'" in text
    assert f"python examples/integrations/{example}.py" in text
    assert module is None or page == "spacy" or f"sottovoce.integrations.{module} import" in text


def test_a_missing_package_is_named_with_what_to_type():
    modules = {part[2]: part[:2] for part in PARTS.values() if part[2]}
    code = (
        "import importlib, json, sys\n"
        f"for module, (package, extra) in json.loads({json.dumps(modules)!r}).items():\n"
        "    sys.modules[package] = None\n"
        "    try:\n"
        "        importlib.import_module(f'sottovoce.integrations.{module}')\n"
        "    except Exception as error:\n"
        "        print(extra, type(error).__name__, error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    lines = ended.stdout.splitlines()
    assert len(lines) == len(modules), ended.stderr
    for line in lines:
        extra, kind, message = line.split(" ", 2)
        assert kind == "SottovoceError"
        assert f"pip install 'sottovoce[{extra}]'" in message


def demo_words(folder: Path) -> Path:
    """A small space of words that documents of the demo hold, at random places."""
    texts = (document.text.lower() for document in load_collection("demo").documents)
    counted = Counter(word for text in texts for word in text.split() if word.isalpha())
    words = [word for word, _ in counted.most_common(600)][200:]
    with SpaceWriter(folder, name="demo-words", dimension=8) as writer:
        writer.append(words, np.random.default_rng(1).standard_normal((len(words), 8)))
        writer.commit()
    return folder


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # PyTerrier and pandas
@pytest.mark.parametrize("page", PARTS)
def test_the_example_runs(page, default_space, capsys, monkeypatch, tmp_path):
    package, _, _, example, quick = PARTS[page]
    pytest.importorskip(package, reason=f"{package} is not installed")
    if page == "spacy":
        from sottovoce.integrations import spacy  # noqa: F401 - an installation has the entry point
    if page == "datasets":
        monkeypatch.setattr(os, "environ", os.environ)  # They put a copy in its place.
        monkeypatch.setenv("HF_HOME", str(tmp_path))
    file = ROOT / "examples" / "integrations" / f"{example}.py"
    described = importlib.util.spec_from_file_location(example, file)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    for name, value in quick.items():
        assert hasattr(module, name)
        if name == "SPACE":  # Attacks on the real one take half a minute.
            value = str(demo_words(tmp_path / value))
        monkeypatch.setattr(module, name, value)
    module.main()
    assert capsys.readouterr().out.strip()
