"""What is optional: the extras of the package, what each brings, and which are installed here.

``EXTRAS`` says what an extra is for; which packages belong to it is read from the package's own
metadata, so that ``pyproject.toml`` remains the only list of them. ``docs/install.md`` shows the
same table, and a test compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

PACKAGE = "sottovoce"
EXTRAS = {
    "app": "the local app: `serve`, its page and its REST service",
    "strong": "the strong sentence encoder (with `spaces add strong`), without torch",
    "fast": "exact nearest words by 16-bit whole numbers, faster than by float32",
    "experiments": "`experiment`: grids, tables, figures and one report",
    "evaluation": "measures of search quality (nDCG, P, recall) from Python",
    "lab": "`membership`, `downstream`, BLEU and METEOR, figures of `attack` and others",
    "language": "parts of speech: `wbb`, `aea`, `--protect noun,adjective`",
    "languages": "dictionaries of other languages as output vocabularies",
    "words": "frequent words of many languages, for `spaces make` and attacks",
    "data": "Parquet and Arrow files in `sanitize`",
    "postgres": "the engine `postgres:`, and the store of vectors `pgvector:`",
    "qdrant": "the store of vectors `qdrant:`",
    "mcp": "`mcp`: private search and more as tools for agents",
    "pyterrier": "transformers and experiments of PyTerrier",
    "presidio": "an operator of Presidio; names found in prompts (`proxy --presidio`)",
    "spacy": "a component of spaCy",
    "sklearn": "a transformer of scikit-learn",
    "langchain": "a retriever and a document transformer of LangChain",
    "datasets": "`map` of Hugging Face data sets",
    "dask": "`sanitize --on dask`, experiments on a Dask cluster",
    "spark": "`sanitize --on spark`; needs Java 17",
    "encoders": "sentence encoders of the package sentence-transformers; brings torch",
    "gpu": "scans on a GPU, the trained denoiser, the model bilstm; brings torch",
    "rewriting": "`DPPrompt`, a language model on this machine; brings torch",
    "docs": "builds this documentation: `make docs`",
    "dev": "everything that the tests need",
}
"""What each extra of ``pyproject.toml`` brings, in the order in which people need them."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class Extra:
    """One extra: its packages, with the version of each that is installed here, else None."""

    name: str
    brings: str
    versions: dict[str, str | None]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, version in self.versions.items() if version is None)

    @property
    def command(self) -> str:
        """How to get it."""
        return f"pip install '{PACKAGE}[{self.name}]'"


def installed_extras() -> list[Extra]:
    """All extras that the installed package knows, in the order of ``EXTRAS``."""
    packages = _packages()
    return [
        Extra(name, brings, {package: _version(package) for package in packages[name]})
        for name, brings in EXTRAS.items()
        if name in packages
    ]


def base_packages() -> dict[str, str | None]:
    """The packages that every installation needs, with the version that is installed."""
    return {package: _version(package) for package in _packages().get("", ())}


def _packages() -> dict[str, list[str]]:
    """The packages of each extra as the package's metadata has them; '' for those always needed."""
    try:
        requirements = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return {}
    packages: dict[str, list[str]] = {}
    for requirement in requirements:
        name = _REQUIREMENT.match(requirement)
        extra = _EXTRA.search(requirement)
        if name is not None:
            packages.setdefault(extra[1] if extra else "", []).append(name[0])
    return packages


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
