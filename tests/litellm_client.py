"""LiteLLM's own client of the generic guardrail, in a process (and environment) of its own.

Called with the guardrail's address and token; reads cases from standard input as JSON and prints
what LiteLLM makes of each: texts, or the kind of error that ends the call.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import sys

from litellm.litellm_core_utils.litellm_logging import Logging
from litellm.proxy.guardrails.guardrail_hooks.generic_guardrail_api.generic_guardrail_api import (
    GenericGuardrailAPI,
)


def logging_of(call: str) -> Logging:
    now = datetime.datetime.now()
    return Logging("m", [], False, "acompletion", now, call, "f")


async def outcome(address: str, token: str, case: dict) -> dict:
    guardrail = GenericGuardrailAPI(
        api_base=address,
        api_key=case.get("token", token),
        guardrail_name="sottovoce",
        **case.get("settings", {}),
    )
    try:
        result = await guardrail.apply_guardrail(
            inputs=case["inputs"],
            request_data={"metadata": {}},
            input_type=case["input_type"],
            logging_obj=logging_of(case["call"]),
        )
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}
    return dict(result)


async def main() -> None:
    address, token = sys.argv[1:]
    cases = json.load(sys.stdin)
    json.dump([await outcome(address, token, case) for case in cases], sys.stdout)


asyncio.run(main())
