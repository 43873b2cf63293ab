"""Search a store of vectors with a noisy vector, then see what an observer makes of it.

    python examples/vectors.py

The store is Qdrant in its local mode, in a temporary folder, where qdrant-client is installed; else
the same documents in memory. Nothing leaves this machine.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from sottovoce.collections import Document, demo_log, load_collection
from sottovoce.encoders import load_encoder
from sottovoce.engines import Dense, Qdrant, VectorEngine
from sottovoce.privacy import QueryLog, SeenVector, invert
from sottovoce.search import PrivateVectorSearch, VectorNoise, promise_depth

QUERY = "treatment for skin cancer"
PUBLIC = demo_log()[::100]
"""Public queries: they are sent as they are, to see how deep one has to ask."""


def store_of(documents: list[Document], folder: Path) -> VectorEngine:
    """The documents in a store; somebody else's, in real life."""
    dense = Dense(documents, "light")
    if importlib.util.find_spec("qdrant_client") is None:
        return dense
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    size = dense.encoder.dimension
    client.create_collection(
        "demo", models.VectorParams(size=size, distance=models.Distance.COSINE)
    )
    vectors = dense.encoder.encode([dense.text(document.doc_id) for document in documents])
    points = [
        models.PointStruct(
            id=number,
            vector=vector.tolist(),
            payload={"key": document.doc_id, "title": document.title, "text": document.text},
        )
        for number, (document, vector) in enumerate(zip(documents, vectors, strict=True))
    ]
    client.upsert("demo", points)
    client.close()
    return Qdrant("demo", "light", folder=str(folder), doc_id="key")


def main() -> None:
    """Search at three epsilons."""
    encoder, log = load_encoder("light"), QueryLog(demo_log())
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(list(load_collection("demo").documents), Path(folder))
        for epsilon in (40.0, 100.0, 250.0):
            noise = VectorNoise(encoder, epsilon)
            search = PrivateVectorSearch(noise, store, depth=200)
            result = search.search(QUERY)
            promise = promise_depth(store, noise, PUBLIC, k=1, deepest=718)
            seen = [SeenVector("1", QUERY, search.count(QUERY).outgoing.vector)]
            attacked = invert(seen, log, noise, add_originals=True)
            (rank,) = attacked.inference.ranks.tolist()
            print(f"epsilon {epsilon:g}, noise {result.noise_to_signal:.1f} times as long:")
            print(f"  found first: {result.hits[0].title}")
            print(f"  the true first hit is inside at depth {promise.depth()} (9 of 10 queries)")
            print(f"  an observer with a log of {len(log):,} queries has yours at rank {rank:g}")


if __name__ == "__main__":
    main()
