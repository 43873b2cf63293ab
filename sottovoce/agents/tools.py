"""What an agent may ask for. How low the voice is, the person decides, not the agent.

Everything that is handed out is counted in the ledger first, also variants that nobody has sent
yet: what an agent is told, it may tell others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

from sottovoce.agents.answers import (
    BudgetAnswer,
    Found,
    ObfuscatedText,
    RiskAnswer,
    SanitizedTexts,
    SearchAnswer,
)
from sottovoce.app.descriptions import ledger_state
from sottovoce.app.loaded import LoadedParts, Protection
from sottovoce.app.previews import Previews
from sottovoce.app.risk import risk_of
from sottovoce.app.schemas import ProtectionBody, Query, SearchBody
from sottovoce.app.searching import left, run_search
from sottovoce.app.streaming import silent
from sottovoce.choices import IN_COMPANY, VoiceId
from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.mechanisms.base import SetMechanism
from sottovoce.obfuscation import Obfuscation
from sottovoce.search.boundary import LONGEST_QUERY
from sottovoce.text import TextPipeline

MOST_HITS, MOST_VARIANTS, MOST_TEXTS, LONGEST_TEXT = 50, 20, 100, 4000
DESTINATION = "agent"
"""Who gets what is handed out, as the ledger writes it down."""

Hits = Annotated[int, Field(ge=1, le=MOST_HITS, description="How many documents to answer.")]
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Count = Annotated[int, Field(ge=1, le=MOST_VARIANTS, description="How many variants.")]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
Variants = Annotated[
    list[Annotated[str, Field(max_length=LONGEST_QUERY)]],
    Field(min_length=1, max_length=100, description="What was, or would be, sent for the query."),
]


@dataclass(frozen=True)
class AgentTools:
    """The tools, over the parts that the local app works with."""

    parts: LoadedParts
    voice: VoiceId
    previews: Previews = field(default_factory=Previews)

    def private_search(self, query: Query, top: Hits = 10) -> SearchAnswer:
        """Search without telling the engine what for: only altered queries leave this machine.

        Each search spends privacy budget; words that were asked for before cost nothing again.
        When the budget is spent this fails: do not rephrase, tell the person.
        """
        body = SearchBody(query=query, voice=self.voice, top=top, measure=False)
        answer = run_search(self.parts, self.previews, body, silent)
        return {
            "hits": [
                Found(
                    rank=hit["rank"],
                    title=hit["title"],
                    snippet=hit["snippet"],
                    source=hit["doc_id"],
                    score=hit["score"],
                )
                for hit in answer["hits"]
            ],
            "sent": answer["sent"],
            "engine": answer["engine"],
            "protected": answer["protected"] or answer["recalled"],
            "query_sent": answer["query_sent"],
            "spent": answer["spent"],
            "left": answer["left"],
            "promise": _promise(answer["guarantee"]),
            "problem": answer["problem"],
            "worn_out": answer["worn_out"],
            "small_company": self.parts.small_company if self.voice == IN_COMPANY else None,
        }

    def obfuscate(self, text: Text, n: Count = 5) -> ObfuscatedText:
        """Variants of a text that say less than it does. They are counted as if they were sent."""
        protection = self._of_texts(n)
        result, spent, remaining = self._counted(text, protection)
        return {
            "variants": list(result.variants),
            "spent": spent,
            "left": remaining,
            "promise": result.guarantee.sentence,
            "caveats": list(result.guarantee.caveats),
        }

    def sanitize(self, texts: Texts) -> SanitizedTexts:
        """One substitute for each text, word by word, so that it can be given away. It is counted.

        All or none: where one text cannot be counted any more, nothing is answered.
        """
        protection = self._of_texts(1)
        if isinstance(protection.obfuscator.mechanism, SetMechanism):
            raise UsageError(
                "this voice hides a query among public ones and rewrites no text: start the server "
                "with another --voice"
            )
        results = [self._counted(text, protection) for text in texts]
        costs = [spent for _, spent, _ in results]
        last, _, remaining = results[-1]
        return {
            "texts": [result.variants[0] for result, _, _ in results],
            "spent": None if None in costs else sum(cost for cost in costs if cost is not None),
            "left": remaining,
            "promise": last.guarantee.sentence,
            "caveats": list(last.guarantee.caveats),
        }

    def assess_risk(self, query: Query, variants: Variants) -> RiskAnswer:
        """Attack variants of a query on this machine, as a stranger would who knows the rest.

        Nothing is sent, nothing is counted. Take the variants from what private_search sent.
        """
        risk = risk_of(self.parts, self._protection(), query, variants)
        return {"sentence": risk["sentence"], "query": risk["query"], "words": risk["words"]}

    def budget(self) -> BudgetAnswer:
        """What may be spent, and what was."""
        state = ledger_state()
        return {
            "per_text": state["budget"]["per_text"],
            "total": state["budget"]["total"],
            "spent": [total["sentence"] for total in state["spent"]],
        }

    def _protection(self) -> Protection:
        return self.parts.protection(ProtectionBody(voice=self.voice))

    def _of_texts(self, n: int) -> Protection:
        """The same mechanism for a text that is read, not searched with: nothing is left out."""
        obfuscator = self._protection().obfuscator
        mechanism = obfuscator.mechanism
        count = 1 if isinstance(mechanism, SetMechanism) else n
        pipeline = TextPipeline(protect=mechanism.protects)
        key = Ledger.open().memory_key()
        return Protection(replace(obfuscator, n=count, pipeline=pipeline, memory_key=key))

    def _counted(
        self, text: str, protection: Protection
    ) -> tuple[Obfuscation, float | None, float | None]:
        """What came of a text, once it is counted; what that cost, and what is left."""
        ledger = Ledger.open()
        (result,) = protection.obfuscator.obfuscate([text])
        receipt = ledger.charge(Entry.of(result, protection.obfuscator, DESTINATION))
        return result, receipt.record.spent, left(ledger, result, protection)


def _promise(guarantee: dict[str, Any]) -> str:
    return Guarantee(**{**guarantee, "caveats": tuple(guarantee["caveats"])}).sentence


def require_budget(*, unlimited: bool) -> None:
    """Refuse to serve agents without a limit: one that asks a hundred times would spend it all."""
    if not unlimited and Ledger.open().budget().total is None:
        raise UsageError(
            "there is no budget, and an agent may ask a hundred times: set one first, as in "
            "'sottovoce ledger budget --total 150', or start with --unlimited"
        )
