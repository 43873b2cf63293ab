"""LangChain's own suite for retrievers.

It brings plug-ins of pytest that change how other tests run, so it has an environment of its own:

    pip install langchain-tests
    pytest tests/test_langchain_standard.py \
        -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function
"""

from __future__ import annotations

import pytest
from integration_data import engine, obfuscator

from sottovoce import PrivateSearch
from sottovoce.search import load_reranker

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_tests.integration_tests import RetrieversIntegrationTests

from sottovoce.integrations.langchain import PrivateRetriever


class TestPrivateRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return PrivateRetriever

    @property
    def retriever_constructor_params(self):
        search = PrivateSearch(obfuscator(5), engine(), load_reranker("bm25"))
        return {"search": search}

    @property
    def retriever_query_example(self):
        return "wordaa wordbc wordcd"
