"""LangChain: documents for a question that does not leave this machine."""

from __future__ import annotations

from langchain_core.documents import Document

import sottovoce
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.integrations.langchain import DocumentSanitizer, PrivateRetriever
from sottovoce.search import load_reranker


def main() -> None:
    """Retrieve privately; then sanitize a document before it goes to an index elsewhere."""
    cmp = sottovoce.mechanism("cmp", epsilon=7.5)
    search = sottovoce.PrivateSearch(
        sottovoce.Obfuscator(cmp, n=10, release="once"),
        engine=BM25(load_collection("demo").documents),
        reranker=load_reranker("light"),
        depth=10,
    )
    retriever = PrivateRetriever(search=search, k=3)
    for document in retriever.invoke("treatment for skin cancer"):
        print(document.metadata["rank"], document.metadata["title"])

    notes = [Document("Anna was told that it is melanoma.", metadata={"source": "notes.txt"})]
    sanitizer = DocumentSanitizer(sottovoce.Obfuscator(cmp), metadata=["source"])
    print(sanitizer.transform_documents(notes))


if __name__ == "__main__":
    main()
