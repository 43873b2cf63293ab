"""Whether everything is there that a search needs."""

from __future__ import annotations

from typing import Any

from sottovoce import __version__
from sottovoce.app.state import Workbench


def health_of(bench: Workbench, problems: list[str]) -> dict[str, Any]:
    """What is there; nothing is waited for."""
    status = "loading" if not bench.prepared else "incomplete" if problems else "ready"
    engine = bench.engine() if bench.engine.there else None
    here = engine is not None and not engine.remote and bench.collection.there
    return {
        "status": status,
        "problems": problems,
        "version": __version__,
        "collection": bench.collection().name if here else None,
        "engine": engine and engine.name,
        "remote": engine and engine.remote,
        "reranker": bench.reranker().name if bench.reranker.there else None,
        "space": bench.space().name if bench.space.there else None,
        "log": len(bench.log()) if bench.log.there else None,
    }
