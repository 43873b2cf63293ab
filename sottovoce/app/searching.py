"""A search, and a preview of one, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sottovoce.app.previews import Preview, Previews
from sottovoce.app.risk import risk_of
from sottovoce.app.schemas import PreviewBody, SearchBody
from sottovoce.app.state import Choice, Workbench
from sottovoce.app.streaming import Tell
from sottovoce.errors import SottovoceError
from sottovoce.ledger import Entry, Ledger, Promise, request_key
from sottovoce.obfuscation import Obfuscation
from sottovoce.private_search import SearchResult
from sottovoce.reranking import Reranker
from sottovoce.types import Float64Array


class Announced:
    """A re-ranker that says when it begins."""

    def __init__(self, reranker: Reranker, tell: Tell, sent: int) -> None:
        self._reranker, self._tell, self._sent = reranker, tell, sent
        self.name = reranker.name

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """As the re-ranker has it."""
        self._tell({"step": "sending", "done": self._sent, "of": self._sent})
        self._tell({"step": "reranking"})
        return self._reranker.scores(query, texts)


def draw_preview(bench: Workbench, previews: Previews, body: PreviewBody) -> dict[str, Any]:
    """Draw variants, count them, and keep them to be sent."""
    choice, ledger = bench.choice(body), Ledger.open()
    search = bench.search(choice, ledger, bench.reranker())
    (result,) = choice.obfuscator.obfuscate([body.query])
    search.boundary.check(result.variants)
    entry = Entry.of(result, choice.obfuscator, search.engine.name)
    key = request_key(choice.obfuscator) if choice.remember else None
    receipt = ledger.charge(entry, remember=key)
    result = replace(result, variants=receipt.variants)
    kept = previews.keep(choice.key, result, receipt)
    return {
        **result.to_dict(),
        "preview": kept.id,
        "expires_in": previews.lifetime,
        "release": choice.release,
        "spent": receipt.record.spent,
        "left": left(ledger, result, choice),
        "recalled": receipt.recalled,
        "to": search.engine.name,
    }


def run_search(
    bench: Workbench, previews: Previews, body: SearchBody, tell: Tell
) -> dict[str, Any]:
    """Obfuscate, count, send, pool, re-rank; perhaps measure. ``tell`` gets each step."""
    tell({"step": "obfuscating"})
    choice, ledger = bench.choice(body), Ledger.open()
    preview = previews.get(body.preview, body.query, choice.key) if body.preview else None
    if preview is None:
        (drawn,) = choice.obfuscator.obfuscate([body.query])
    else:
        drawn = preview.result
    tell({"step": "sending", "done": 0, "of": len(drawn.variants)})
    reranker = Announced(bench.reranker(), tell, len(drawn.variants))
    search = bench.search(choice, None if preview else ledger, reranker)
    found = search.answer(
        drawn,
        body.top,
        progress=lambda done, of: tell({"step": "sending", "done": done, "of": of}),
    )
    if preview is not None:
        found = _already_counted(found, preview, choice)
    result = {
        **found.to_dict(),
        "left": left(ledger, drawn, choice),
        "protected": drawn.spent != 0,
    }
    if body.measure:
        tell({"step": "measuring"})
        result["risk"] = _measured(bench, choice, found)
    return result


def _measured(bench: Workbench, choice: Choice, found: SearchResult) -> dict[str, Any] | None:
    """The risk of what was sent; None where it cannot be measured, and the search stands."""
    try:
        return risk_of(bench, choice, found.query, found.sent)
    except SottovoceError:
        return None


def left(ledger: Ledger, result: Obfuscation, choice: Choice) -> float | None:
    """The most that one more release of this query may cost; None: there is no budget."""
    where = choice.obfuscator.mechanism.metric_space
    promise = Promise.of(result.guarantee, where[1] if where else None)
    most = ledger.remaining(result.text, promise)
    return most if math.isfinite(most) else None


def _already_counted(found: SearchResult, preview: Preview, choice: Choice) -> SearchResult:
    """The result as the receipt has it."""
    receipt = preview.receipt
    return replace(
        found, spent=receipt.record.spent, recalled=receipt.recalled, release=choice.release
    )
