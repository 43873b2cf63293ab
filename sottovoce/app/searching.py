"""A search, and a preview of one, as the service answers them."""

from __future__ import annotations

import math
from typing import Any

from sottovoce.app.previews import Previews
from sottovoce.app.risk import risk_of
from sottovoce.app.schemas import PreviewBody, SearchBody
from sottovoce.app.state import Choice, Workbench
from sottovoce.app.streaming import Tell
from sottovoce.errors import SottovoceError
from sottovoce.ledger import Ledger, Promise
from sottovoce.obfuscation import Obfuscation
from sottovoce.search import SearchResult, Step


def draw_preview(bench: Workbench, previews: Previews, body: PreviewBody) -> dict[str, Any]:
    """Draw variants, count them, and keep them to be sent."""
    choice, ledger = bench.choice(body), Ledger.open()
    search = bench.search(choice, ledger)
    release = search.count(body.query)
    preview = previews.keep(choice.key, release)
    return {
        **release.result.to_dict(),
        "variants": list(release.variants),
        "preview": preview.id,
        "expires_in": previews.lifetime,
        "release": choice.release,
        "spent": release.spent,
        "left": left(ledger, release.result, choice),
        "recalled": release.recalled,
        "to": search.engine.name,
    }


def run_search(
    bench: Workbench, previews: Previews, body: SearchBody, tell: Tell
) -> dict[str, Any]:
    """Search, or send what was previewed; perhaps measure. ``tell`` gets each step."""
    tell({"step": "obfuscating"})
    choice, ledger = bench.choice(body), Ledger.open()
    search = bench.search(choice, ledger)
    if body.preview:
        release = previews.get(body.preview, body.query, choice.key).release
    else:
        release = search.count(body.query)
    result = search.send(release, body.top, on_step=lambda step: tell(_event(step)))
    answer = {
        **result.to_dict(),
        "left": left(ledger, release.result, choice),
        "protected": release.result.spent != 0,
    }
    if body.measure:
        tell({"step": "measuring"})
        answer["risk"] = _measured(bench, choice, result)
    return answer


def _event(step: Step) -> dict[str, Any]:
    """A step as the page reads it."""
    if step.name == "sending":
        return {"step": step.name, "done": step.done, "of": step.of}
    return {"step": step.name}


def _measured(bench: Workbench, choice: Choice, result: SearchResult) -> dict[str, Any] | None:
    """The risk of what was sent; None where it cannot be measured, and the search stands."""
    try:
        return risk_of(bench, choice, result.query, result.sent)
    except SottovoceError:
        return None


def left(ledger: Ledger, result: Obfuscation, choice: Choice) -> float | None:
    """The most that one more release of this query may cost; None: there is no budget."""
    where = choice.obfuscator.mechanism.metric_space
    promise = Promise.of(result.guarantee, where[1] if where else None)
    most = ledger.remaining(result.text, promise)
    return most if math.isfinite(most) else None
