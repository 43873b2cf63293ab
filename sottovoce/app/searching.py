"""A search, and a preview of one, as the service answers them."""

from __future__ import annotations

import math
from typing import Any

from sottovoce.app.loaded import LoadedParts, Protection, account_of
from sottovoce.app.openapi import Like
from sottovoce.app.previews import Previews
from sottovoce.app.risk import risk_of
from sottovoce.app.schemas import PreviewBody, SearchBody
from sottovoce.app.streaming import Tell
from sottovoce.errors import SottovoceError
from sottovoce.ledger import Ledger
from sottovoce.obfuscation import Obfuscation
from sottovoce.search import SearchResult, Step, worn_out

NOT_SHOWN = ("counts", "pipeline", "word_hashes", "remembered_by")
CUT = ("texts", dict[str, Any] | None)
"""How the text was cut and laid out."""
OBFUSCATED = Like(
    Obfuscation,
    without=NOT_SHOWN,
    more=(CUT,),
    meaning="The JSON line of ``sottovoce obfuscate``.",
)
PREVIEWED = Like(
    Obfuscation,
    without=NOT_SHOWN,
    more=(
        CUT,
        *(("preview", str), ("expires_in", float)),
        *(("left", float | None), ("recalled", bool), ("to", str)),
        ("worn_out", str | None),
    ),
    name="Preview",
    meaning="Variants that are counted and not sent yet; ``left`` is null without a budget; "
    "``worn_out`` and ``company`` as after a search, but that nothing of it has been sent.",
)
SEARCHED = Like(
    SearchResult,
    more=(("left", float | None), ("protected", bool), ("worn_out", str | None)),
    meaning="The JSON of ``sottovoce search``, and what is left of the budget. ``protected`` is "
    "false where the query has no word that could be replaced; ``worn_out`` says when too many "
    "queries on one subject have left in company.",
)


def draw_preview(parts: LoadedParts, previews: Previews, body: PreviewBody) -> dict[str, Any]:
    """Draw variants, count them, and keep them to be sent."""
    protection, ledger = parts.protection(body), Ledger.open()
    search = parts.private_search(protection, ledger)
    release = search.count(body.query)
    preview = previews.keep(body.query, protection, release)
    company = release.result.company
    return {
        **release.result.to_dict(),
        "company": company and company.unsent(),
        "preview": preview.id,
        "expires_in": previews.lifetime,
        "spent": release.spent,
        "left": left(ledger, release.result, protection),
        "recalled": release.recalled,
        "to": search.engine.name,
        "worn_out": worn_out(search, release.result.company),
    }


def run_search(
    parts: LoadedParts, previews: Previews, body: SearchBody, tell: Tell
) -> dict[str, Any]:
    """Search, or send what was previewed; perhaps measure. ``tell`` gets each step."""
    tell({"step": "obfuscating"})
    protection, ledger = parts.protection(body), Ledger.open()
    search = parts.private_search(protection, ledger)
    if body.preview:
        release = previews.get(body.preview, body.query, protection).release
    else:
        release = search.count(body.query)
    worn = worn_out(search, release.result.company)
    result = search.send(release, body.top, on_step=lambda step: tell(_event(step)))
    answer = {
        **result.to_dict(),
        "left": left(ledger, release.result, protection),
        "protected": release.result.spent != 0,
        "worn_out": worn,
    }
    if body.measure:
        tell({"step": "measuring"})
        try:
            answer["risk"] = risk_of(parts, protection, result.query, result.sent)
        except SottovoceError:  # It cannot be measured, and the search stands.
            answer["risk"] = None
    return answer


def _event(step: Step) -> dict[str, Any]:
    """A step as the page reads it."""
    if step.name == "sending":
        return {"step": step.name, "done": step.done, "of": step.of}
    return {"step": step.name}


def left(ledger: Ledger, result: Obfuscation, protection: Protection) -> float | None:
    """The most that one more release of this query may cost; None: there is no budget."""
    account = account_of(protection.obfuscator.mechanism, result.guarantee)
    most = ledger.remaining(result.text, account)
    return most if math.isfinite(most) else None
