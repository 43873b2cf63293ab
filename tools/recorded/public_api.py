"""Call what ``import sottovoce`` offers, and nothing else of it; print what comes back."""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from recorded.inputs import ARTICLES, ODD_TEXTS, QUERIES, QUERY

import sottovoce

WORD_MECHANISMS = (
    *("cmp", "mahalanobis:lambda=0.5", "vickrey-cmp:t=0.5", "vickrey-mahalanobis", "santext"),
    *("tem", "custext:k=5", "wbb:k=2,n=9"),
)


class Found(NamedTuple):
    """A document that the engine found: the package names no class for it."""

    doc_id: str
    score: float
    title: str
    snippet: str


class SharedWords:
    """A search engine of somebody else: articles by the words that they share with a query."""

    name, remote, pause = "shared words", False, 0.0
    most_queries: int | None = None

    def search(self, queries: Sequence[str], depth: int) -> Any:
        """The best articles of each query."""
        return [self._best(set(query.lower().split()), depth) for query in queries]

    def text(self, doc_id: str) -> str:
        """An article, its title first."""
        return "\n".join(ARTICLES[int(doc_id)])

    def _best(self, words: set[str], depth: int) -> list[Found]:
        scores = [
            float(len(words & set(self.text(str(number)).lower().split())))
            for number in range(len(ARTICLES))
        ]
        best = sorted(range(len(ARTICLES)), key=lambda number: (-scores[number], number))[:depth]
        return [Found(str(number), scores[number], ARTICLES[number][0], "") for number in best]


class Shortest:
    """A re-ranker that likes short texts."""

    name = "shortest"

    def scores(self, query: str, texts: Sequence[str]) -> Any:
        """The shorter, the better."""
        return np.array([-float(len(text)) for text in texts])


def show(label: str, value: object) -> None:
    """Print a result under a label; what has ``to_dict`` as JSON, too."""
    print(f"----- {label}\n{value!r}")
    if hasattr(value, "to_dict"):
        print(json.dumps(value.to_dict(), indent=1, ensure_ascii=False))


def refused(label: str, call: Callable[[], object]) -> None:
    """Print which error a call raises."""
    try:
        show(label, call())
    except Exception as error:
        print(f"----- {label}\n{type(error).__name__}: {error}")


def signatures() -> None:
    """What is public, with parameters and defaults; annotations name types that may move."""
    print(*sorted(sottovoce.__all__), sep="\n")
    for name in sorted(sottovoce.__all__):
        public = getattr(sottovoce, name)
        if not callable(public):
            show(name, public)
            continue
        print(f"===== {name}")
        if inspect.isclass(public):
            print("bases", *(base.__name__ for base in public.__mro__[1:]))
        members = inspect.getmembers(public) if inspect.isclass(public) else []
        _print_parameters(name, public)
        for member, value in members:
            if member.startswith("_") or issubclass(public, BaseException):
                continue
            if callable(value):
                _print_parameters(member, value)
            else:
                print(member, type(value).__name__)


def _print_parameters(name: str, public: Callable[..., object]) -> None:
    try:
        whole = inspect.signature(public)
    except ValueError:
        return
    empty = inspect.Parameter.empty
    bare = [parameter.replace(annotation=empty) for parameter in whole.parameters.values()]
    print(f"{name}{inspect.Signature(bare)}")


def calls() -> None:
    """A few seeded calls of each kind."""
    space = sottovoce.load_space("small")
    _spaces(space)
    for spec in WORD_MECHANISMS:
        _word_mechanism(spec, space)
    fea = sottovoce.mechanism("fea", engine=SharedWords())
    for made in (fea, sottovoce.mechanism("aea:level=2")):
        show(f"{made.spec}, guarantee", made.guarantee)
        show(f"{made.spec}, variants", variants(made, 4, seed=1))
    _pipelines(space)
    _guarantees()
    _searches(space)
    _refusals(space)


def variants(made: sottovoce.Mechanism, n: int, seed: int) -> list[str]:
    """Obfuscations of the query."""
    (result,) = sottovoce.Obfuscator(made, n=n, rng=seed).obfuscate([QUERY])
    return list(result.variants)


def _spaces(space: sottovoce.WordSpace) -> None:
    show("default space", sottovoce.load_space("default"))
    show("small space", [space, space.name, space.size, space.dimension, space.sha256])
    show(
        "words", [space.words([0, 5, 5]), space.ids(["skin", "nowhere"]).tolist(), "skin" in space]
    )
    show("vector", space.vectors[3].tolist())
    show("covariance", np.round(space.covariance, 9).tolist())
    output = sottovoce.OutputVocabulary("some", np.array([7, 3, 3, 9]))
    show("output vocabulary", [len(output), output.ids.tolist(), space.with_output(output)])
    made = sottovoce.WordSpace.from_arrays(["a", "b", "c"], [[0, 0], [3, 4], [1, 1]], name="made")
    show("made space", [made, made.sha256, made.words([2, 0])])


def _word_mechanism(spec: str, space: sottovoce.WordSpace) -> None:
    made = sottovoce.mechanism(spec, space=space, epsilon=2)
    assert isinstance(made, sottovoce.WordMechanism)
    named = [made, made.name, made.spec, made.summary, made.paper, made.protects, made.made_with]
    show(f"{spec}, mechanism", named)
    show(f"{spec}, parameters", [(field.name, field.default) for field in made.parameters()])
    show(f"{spec}, resources and facts", [made.resources(), made.facts(), made.metric_space])
    show(f"{spec}, guarantee", made.guarantee)
    show(f"{spec}, published", made.published)
    show(f"{spec}, variants", variants(made, 3, seed=5))
    ids = space.ids(["skin", "cancer", "lawyer"])
    show(f"{spec}, sample", made.sample(ids, 4, np.random.default_rng(3)).tolist())
    law = made.log_probabilities(ids)
    show(f"{spec}, law", None if law is None else np.round(law[:, :20], 9).tolist())
    show(f"{spec}, distances", np.round(made.distances(ids, ids[::-1]), 9).tolist())
    settings: list[dict[str, Any]] = [{}, {"batch_size": 2}, {"workers": 2}]
    for setting in settings:
        obfuscator = sottovoce.Obfuscator(made, n=2, rng=9, **setting)
        show(f"{spec}, obfuscator", obfuscator)
        results = list(obfuscator.obfuscate(QUERIES, first=3))
        show(f"{spec}, results", [result.variants for result in results])
        show(f"{spec}, first result", results[0])


def _pipelines(space: sottovoce.WordSpace) -> None:
    for settings in (
        *({}, {"unknown": "drop", "punctuation": "drop"}, {"protect": "content"}),
        {"protect": "noun", "keep": frozenset({"Skin"}), "restore_case": True},
    ):
        pipeline = sottovoce.TextPipeline(**settings)
        show("pipeline", pipeline)
        for text in ODD_TEXTS:
            prepared = pipeline.prepare(text, space)
            parts = [prepared.slots.tolist(), prepared.spans.tolist(), prepared.literals]
            show("prepared", [*parts, prepared.unknown, prepared.kept, prepared.counts])


def _guarantees() -> None:
    metric = sottovoce.Guarantee("metric", 3.0, "euclidean", caveats=("one",))
    for guarantee in (metric, *(sottovoce.Guarantee(notion, 2.0) for notion in ("local", "group"))):
        show("guarantee", guarantee.with_caveats("two"))
        show("sentence", guarantee.sentence)
        show("losses", [guarantee.loss(1.5, 2), guarantee.loss(1.0, 4)])


def _searches(space: sottovoce.WordSpace) -> None:
    cmp = sottovoce.mechanism("cmp", space=space, epsilon=3)
    obfuscator = sottovoce.Obfuscator(cmp, n=4, release="once", rng=2)
    with tempfile.TemporaryDirectory() as folder:
        ledger = sottovoce.Ledger.open(Path(folder) / "ledger")
        ledger.set_budget(per_text=7, total=None)
        search = sottovoce.PrivateSearch(
            obfuscator, engine=SharedWords(), reranker=Shortest(), ledger=ledger, pooling="rrf"
        )
        for query in (QUERY, QUERIES[1], QUERY.upper()):
            show("search", search.search(query, top=3))
        refused("budget", lambda: search.search(QUERY))
        show("ledger", [ledger.check(), ledger.budget(), ledger.spent(), ledger.spent(QUERY)])
        kept = ("number", "mechanism", "release", "variants", "spent", "destination", "total")
        show("records", [{key: vars(entry)[key] for key in kept} for entry in ledger.entries(2)])
        ledger.reset()
        show("after the reset", [ledger.check(), ledger.spent(), ledger.budget()])


def _refusals(space: sottovoce.WordSpace) -> None:
    cmp = sottovoce.mechanism("cmp", space=space)
    santext = sottovoce.mechanism("santext", space=space)
    obfuscator = sottovoce.Obfuscator(cmp, rng=1)
    wrong: dict[str, Callable[[], object]] = {
        "unknown mechanism": lambda: sottovoce.mechanism("cnp", space=space),
        "unknown parameter": lambda: sottovoce.mechanism("cmp", space=space, t=1),
        "epsilon": lambda: sottovoce.mechanism("cmp", space=space, epsilon=0),
        "no engine": lambda: sottovoce.mechanism("fea"),
        "no pool": lambda: sottovoce.mechanism("comet-cmp"),
        "no space": lambda: sottovoce.load_space("nowhere"),
        "variants": lambda: sottovoce.Obfuscator(cmp, n=0),
        "once": lambda: sottovoce.Obfuscator(santext, release="once"),
        "one string": lambda: obfuscator.obfuscate(QUERY),
        "no text": lambda: list(obfuscator.obfuscate([None])),  # type: ignore[list-item]
        "policy": lambda: sottovoce.TextPipeline(unknown="kep"),  # type: ignore[arg-type]
        "unknown words": lambda: sottovoce.TextPipeline(unknown="error").prepare("zzyzx", space),
        "keep": lambda: sottovoce.TextPipeline(keep=frozenset({"two words"})),
        "vectors": lambda: sottovoce.WordSpace.from_arrays(["a"], [[1.0], [2.0]]),
        "vocabulary": lambda: sottovoce.OutputVocabulary("none", np.array([], dtype=np.int64)),
        "notion": lambda: sottovoce.Guarantee("metric", 1.0),
        "no such name": lambda: sottovoce.nothing,
    }
    for label, call in wrong.items():
        refused(label, call)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sottovoce.TextPipeline(unknown="keep")
    show("warnings", [(warning.category.__name__, str(warning.message)) for warning in caught])


if __name__ == "__main__":
    {"signatures": signatures, "calls": calls}[sys.argv[1]]()
