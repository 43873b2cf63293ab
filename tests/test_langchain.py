"""LangChain: a retriever that tells nobody, and documents without what they said."""

from __future__ import annotations

import asyncio

import pytest
from integration_data import SECRET, WORDS, Hostile, collection, engine, obfuscator

from sottovoce import Obfuscator, PrivateSearch
from sottovoce.engines import EngineError, Hit
from sottovoce.errors import PrivacyWarning, SottovoceError
from sottovoce.search import load_reranker

pytest.importorskip("langchain_core")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.utils import get_env_var

from sottovoce.integrations.langchain import DocumentSanitizer, PrivateRetriever

QUERY = f"wordaa wordbc {SECRET}"


class Stranger:
    """An engine elsewhere that keeps what it is asked."""

    name, remote, pause, most_queries = "stranger", True, 0.0, None

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[str] = []
        self.fails = fails

    def search(self, queries, depth):
        self.asked += queries
        if self.fails:
            raise EngineError("stranger does not answer")
        return [[Hit("x", 1.0, "Title", "snippet")] for _ in queries]


class Listener(BaseCallbackHandler):
    """Keeps everything that LangChain tells its handlers."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_retriever_start(self, *arguments, **options):
        self.heard.append(repr((arguments, options)))

    def on_retriever_end(self, *arguments, **options):
        self.heard.append(repr((arguments, options)))

    def on_retriever_error(self, *arguments, **options):
        self.heard.append(repr((arguments, options)))


@pytest.fixture(autouse=True)
def untraced(monkeypatch):
    """Whatever the environment of whoever runs this says."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    get_env_var.cache_clear()
    yield
    get_env_var.cache_clear()


def retriever(search_engine=None, n=3, **options) -> PrivateRetriever:
    search = PrivateSearch(obfuscator(n), search_engine or engine(), load_reranker("bm25"))
    return PrivateRetriever(search=search, **options)


def test_it_answers_documents_in_every_way_that_langchain_asks():
    subject = retriever(k=3)
    texts = {f"{d.title}\n{d.text}" for d in collection().documents}
    for documents in (
        subject.invoke(QUERY),
        asyncio.run(subject.ainvoke(QUERY)),
        subject.batch([QUERY])[0],
        next(iter(subject.stream(QUERY))),
        (RunnableLambda(lambda text: text) | subject).invoke(QUERY),
    ):
        assert len(documents) == 3
        assert {document.page_content for document in documents} <= texts
        assert [document.metadata["rank"] for document in documents] == [1, 2, 3]
        assert all(document.id for document in documents)
    assert len(subject.invoke(QUERY, k=1)) == 1


def test_an_engine_elsewhere_gets_variants_and_gives_snippets():
    stranger = Stranger()
    (document,) = retriever(stranger).invoke(QUERY)
    assert (document.page_content, document.id) == ("snippet", "x")
    assert stranger.asked
    assert not any(SECRET in query for query in stranger.asked)


def test_no_handler_hears_of_the_query():
    listener = Listener()
    chain = RunnableLambda(lambda text: text["q"]) | retriever(k=2)
    assert len(chain.invoke({"q": QUERY}, {"callbacks": [listener]})) == 2
    asyncio.run(retriever().ainvoke(QUERY, {"callbacks": [listener]}))
    assert listener.heard == []


@pytest.mark.parametrize("name", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_tracing_is_warned_of_each_time_and_told_nothing(monkeypatch, name):
    monkeypatch.setenv(name, "true")
    get_env_var.cache_clear()
    posted = []
    monkeypatch.setattr(Client, "create_run", lambda *a, **o: posted.append(repr((a, o))))
    subject = retriever()
    for _ in range(2):
        with pytest.warns(PrivacyWarning, match="tracing is on"):
            subject.invoke(QUERY)
    with pytest.warns(PrivacyWarning, match="LANGSMITH_TRACING"):
        asyncio.run(subject.ainvoke(QUERY))
    assert posted == []


def test_a_tracer_among_the_callbacks_is_warned_of():
    tracer = LangChainTracer(client=Client(api_key="none", auto_batch_tracing=False))
    with pytest.warns(PrivacyWarning, match="tracing is on"):
        retriever().invoke(QUERY, {"callbacks": [tracer]})
    assert tracer.run_map == {}


def test_the_warning_shows_each_time_with_pythons_own_filters():
    import subprocess
    import sys

    code = (
        "import warnings; from sottovoce.errors import PrivacyWarning\n"
        "for _ in range(3): warnings.warn('weak', PrivacyWarning)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert shown.stderr.count("PrivacyWarning: weak") == 3


def test_failures_send_and_tell_nothing():
    stranger = Stranger()
    search = PrivateSearch(Obfuscator(Hostile()), stranger, load_reranker("none"))
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        PrivateRetriever(search=search).invoke(QUERY)
    assert stranger.asked == []
    assert SECRET not in str(caught.value)
    with pytest.raises(EngineError) as caught:
        retriever(stranger := Stranger(fails=True)).invoke(QUERY)
    assert SECRET not in str(caught.value) + repr(stranger.asked)
    with pytest.raises(ValueError, match="PrivateSearch"):
        PrivateRetriever(search=SECRET)


# Documents


def documents() -> list[Document]:
    said = f"wordaa {SECRET} wordbb"
    return [
        Document(page_content=said, metadata={"summary": said, "source": "a.txt"}, id=str(number))
        for number in range(4)
    ]


def test_documents_keep_their_ids_and_what_is_named_of_their_metadata():
    given = documents()
    new = DocumentSanitizer(obfuscator(), metadata=("source", "page")).transform_documents(given)
    assert [document.id for document in new] == ["0", "1", "2", "3"]
    assert {str(document.metadata) for document in new} == {"{'source': 'a.txt'}"}
    assert SECRET not in repr(new)
    assert {word for document in new for word in document.page_content.split()} <= set(WORDS)
    assert given == documents()
    later = asyncio.run(DocumentSanitizer(obfuscator()).atransform_documents(given))
    assert later[0].metadata == {}


def test_words_are_consistent_only_on_request():
    given = [Document(page_content=" ".join(["wordaa"] * 30))]
    (afresh,) = DocumentSanitizer(obfuscator()).transform_documents(given)
    assert len(set(afresh.page_content.split())) > 1
    subject = DocumentSanitizer(obfuscator(), consistent=True)
    same = {subject.transform_documents(given)[0].page_content for _ in range(2)}
    assert len(same) == 1
    assert len(set(same.pop().split())) == 1


def test_a_failure_gives_no_document_back():
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        DocumentSanitizer(Obfuscator(Hostile())).transform_documents(documents())
    assert SECRET not in str(caught.value)
