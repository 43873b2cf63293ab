"""LangChain: private search as a retriever, and documents sanitized before they go anywhere."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from sottovoce.defaults import TOP
from sottovoce.engines import LocalEngine
from sottovoce.errors import PrivacyWarning, need
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer
from sottovoce.sanitizing.linking import new_secret
from sottovoce.search import PrivateSearch, Ranked

need("langchain_core", "langchain", "the retriever needs LangChain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun  # noqa: E402
from langchain_core.documents import BaseDocumentTransformer, Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.runnables import RunnableConfig, ensure_config  # noqa: E402
from langchain_core.tracers import BaseTracer  # noqa: E402
from langchain_core.tracers.context import tracing_v2_callback_var  # noqa: E402
from langsmith.utils import tracing_is_enabled  # noqa: E402
from pydantic import Field, field_validator  # noqa: E402

TRACED = (
    "tracing is on: this retriever tells no tracer anything, but the chain around it records the "
    "query and the documents, and LangSmith sends them away; switch it off (LANGSMITH_TRACING, "
    "LANGCHAIN_TRACING_V2, and tracers among the callbacks)"
)
CONTENT = "page_content"


class PrivateRetriever(BaseRetriever):
    """Documents for a query that does not leave this machine.

    It tells no callback of the query, nor of what was found: a tracer would record both. Where
    tracing is on it warns, since chains around it are recorded all the same.
    """

    search: Any = Field(repr=False)
    """A :class:`sottovoce.PrivateSearch`: it obfuscates, counts, sends, pools and re-ranks."""
    k: int = TOP
    """Documents to answer."""

    @field_validator("search")
    @classmethod
    def _check_search(cls, search: Any) -> PrivateSearch:
        if not isinstance(search, PrivateSearch):
            raise ValueError("search is a PrivateSearch of sottovoce")
        return search

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """The documents, the best first; ``k=…`` asks for another number of them."""
        _warn_of_tracers(config)
        return self._documents(input, kwargs.get("k", self.k))

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """The same in a thread."""
        _warn_of_tracers(config)
        return await asyncio.to_thread(self._documents, input, kwargs.get("k", self.k))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._documents(query, self.k)

    def _documents(self, query: str, k: int) -> list[Document]:
        return [self._document(hit) for hit in self.search.search(query, k).hits]

    def _document(self, hit: Ranked) -> Document:
        engine = self.search.engine
        whole = isinstance(engine, LocalEngine)
        text = engine.text(hit.doc_id) if whole else hit.snippet
        metadata = {"title": hit.title, "score": hit.score, "rank": hit.rank, "whole": whole}
        return Document(page_content=text, metadata=metadata, id=hit.doc_id)


class DocumentSanitizer(BaseDocumentTransformer):
    """Replaces the texts of documents by what a mechanism draws for their words.

    metadata
        Keys of the metadata that are released as they are; all others are left out.
    consistent
        The same word gets the same substitute in all documents that this object sanitizes. Weaker:
        which places hold equal words then shows.
    deny
        Words that are never released.
    """

    def __init__(
        self,
        obfuscator: Obfuscator,
        *,
        metadata: Iterable[str] = (),
        consistent: bool = False,
        deny: Iterable[str] = (),
    ) -> None:
        self.metadata = tuple(metadata)
        self.sanitizer = Sanitizer(
            obfuscator,
            columns=(CONTENT,),
            linkable=new_secret() if consistent else None,
            deny=frozenset(deny),
        )

    def transform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """New documents with the same ids; nothing comes out if one cannot be sanitized."""
        texts = [document.page_content for document in documents]
        released, _ = self.sanitizer.texts(CONTENT, texts, 0)
        return [
            Document(page_content=text or "", metadata=self._kept(document), id=document.id)
            for text, document in zip(released, documents, strict=True)
        ]

    def _kept(self, document: Document) -> dict[str, Any]:
        return {key: document.metadata[key] for key in self.metadata if key in document.metadata}


def _warn_of_tracers(config: RunnableConfig | None) -> None:
    callbacks = ensure_config(config).get("callbacks")
    handlers = callbacks if isinstance(callbacks, list) else getattr(callbacks, "handlers", [])
    if (
        tracing_is_enabled()
        or tracing_v2_callback_var.get() is not None
        or any(isinstance(handler, BaseTracer) for handler in handlers)
    ):
        warnings.warn(TRACED, PrivacyWarning, stacklevel=3)
