"""What surrounds the retriever: an engine as one, pooling its answers, re-ranking them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sottovoce.choices import POOLINGS, Pooling
from sottovoce.engines.base import Hit, LocalEngine, SearchEngine
from sottovoce.errors import SottovoceError
from sottovoce.integrations.pyterrier.obfuscating import Obfuscate, TrueQuery
from sottovoce.integrations.pyterrier.package import pd, pt
from sottovoce.mechanisms.base import require
from sottovoce.search import DEPTH, Boundary, Pooled, Reranker, pool, rerank
from sottovoce.text.comparing import single_spaced

TRUE_QUERY = "query_0"
"""The column of the true query, after pooling. Before, it is in no column."""
RANKED = ("score", "rank")


class Retrieve(pt.Transformer):
    """An engine of sottovoce as a retriever: it takes what it is given, as any other.

    Title and text come along, of engines elsewhere the snippet.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "Retrieve", "help_url": None, "settings": {}}
    COLUMNS = ("qid", "query", "docno", *RANKED, "title", "text")

    def __init__(self, engine: SearchEngine, depth: int = DEPTH) -> None:
        self.engine, self.depth = engine, depth
        self._boundary = Boundary(engine)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The best documents of each query."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        answers = self._boundary.send(self._boundary.check(inp["query"]), self.depth)
        if answers.failure is not None:
            raise answers.failure
        text = self._text()
        rows = [
            (qid, query, hit.doc_id, hit.score, rank, hit.title, text(hit))
            for qid, query in zip(inp["qid"], inp["query"], strict=True)
            for rank, hit in enumerate(answers.hits.get(single_spaced(query), []))
        ]
        return pd.DataFrame(rows, columns=list(self.COLUMNS))

    def _text(self) -> Callable[[Hit], str]:
        engine = self.engine
        if isinstance(engine, LocalEngine):
            return lambda hit: engine.text(hit.doc_id)
        return lambda hit: f"{hit.title}\n{hit.snippet}".strip()

    def __repr__(self) -> str:
        return f"Retrieve({self.engine.name}, {self.depth})"


class PoolVariants(pt.Transformer):
    """Puts the answers to the variants together, one list for each true query.

    The true query comes back, as ``query_0``; there is no column ``query``, so that what follows
    does not get it by accident; ``pt.apply.rename({"query_0": "query"})`` is for re-rankers here.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "PoolVariants", "help_url": None}

    def __init__(self, obfuscate: Obfuscate, method: Pooling = "union") -> None:
        require(method in POOLINGS, f"pooling is one of {', '.join(POOLINGS)}")
        self.obfuscate, self.method = obfuscate, method

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """One list a query, the best first, with the columns that documents have."""
        pt.validate.result_frame(inp, extra_columns=list(RANKED), context=self)
        columns = [
            name
            for name in inp.columns
            if name not in ("qid", "docno", *RANKED) and name not in pt.model.query_columns(inp)
        ]
        answers: dict[str, tuple[TrueQuery, dict[int, list[Hit]]]] = {}
        documents: dict[tuple[str, str], tuple[Any, ...]] = {}
        ordered = inp.sort_values("rank", kind="stable")
        described = ordered[columns].itertuples(index=False, name=None)
        for name, docno, score, document in zip(
            ordered["qid"], ordered["docno"], ordered["score"], described, strict=True
        ):
            query, variant = self.obfuscate.kept.of(name)
            _, by_variant = answers.setdefault(query.qid, (query, {}))
            by_variant.setdefault(variant, []).append(Hit(docno, float(score)))
            documents.setdefault((query.qid, docno), document)
        rows = [
            (qid, text, hit.doc_id, hit.score, rank, *documents[qid, hit.doc_id])
            for qid, (query, by_variant) in sorted(answers.items(), key=lambda item: str(item[0]))
            for text in [query.release.result.text]
            for rank, hit in enumerate(self._pooled(by_variant))
        ]
        return pd.DataFrame(rows, columns=["qid", TRUE_QUERY, "docno", *RANKED, *columns])

    def _pooled(self, by_variant: dict[int, list[Hit]]) -> list[Pooled]:
        return pool([by_variant[variant] for variant in sorted(by_variant)], self.method)

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """None: the pipeline holds the Obfuscate already."""
        return {}

    def __repr__(self) -> str:
        return f"PoolVariants({self.method})"


class Rerank(pt.Transformer):
    """Orders documents by the true query, on this machine.

    The query is ``query_0`` where there is one, else ``query``; ``text`` names the column with
    the texts of the documents.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "Rerank", "help_url": None, "settings": {}}

    def __init__(self, reranker: Reranker, text: str = "text") -> None:
        self.reranker, self.text = reranker, text

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same documents with new scores and ranks."""
        with pt.validate.any(inp, context=self) as checked:
            checked.result_frame(extra_columns=[TRUE_QUERY, self.text], mode="private")
            checked.result_frame(extra_columns=["query", self.text], mode="plain")
        column = TRUE_QUERY if TRUE_QUERY in inp.columns else "query"
        ranked = [self._ranked(group, column) for _, group in inp.groupby("qid")]
        if not ranked:
            return inp.assign(score=pd.Series(dtype=float), rank=pd.Series(dtype=int))
        return pd.concat(ranked, ignore_index=True)

    def _ranked(self, group: pd.DataFrame, column: str) -> pd.DataFrame:
        """The rows of one query, the best first."""
        places = [Pooled(str(place), "", "", 0.0, ()) for place in range(len(group))]
        texts = group[self.text].fillna("").tolist()
        try:
            hits = rerank(group[column].iloc[0], places, self.reranker, texts)
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could hold the query: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"re-ranking with {self.reranker.name} failed ({type(error).__name__}): try "
                "another re-ranker, such as load_reranker('bm25')"
            ) from None
        ordered = group.iloc[[int(hit.doc_id) for hit in hits]]
        return ordered.assign(score=[hit.score for hit in hits], rank=range(len(hits)))

    def __repr__(self) -> str:
        return f"Rerank({self.reranker.name})"
