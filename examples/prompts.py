"""What becomes of a prompt before it leaves, and of the answer when it comes back.

No language model is asked: the answer here is made up. Run it with ``python examples/prompts.py``.
"""

from __future__ import annotations

import sottovoce
from sottovoce.prompts import Listed, Message, Patterns, PromptProtection, Restorer
from sottovoce.text import TextPipeline

PROMPT = (
    "I am Zebulon Quartermaine, zebulon@mail.example, born 14.03.1978, and ⟦my husband drinks⟧. "
    "Draft a letter to my landlord."
)
ANSWER = ("Dear landlord, my name is [NA", "ME_1]; write to [EMAIL_1", "]. Kind regards")


def main() -> None:
    """Protect a prompt, show what would leave, put values back into a streamed answer."""
    cmp = sottovoce.mechanism("cmp", space=sottovoce.load_space("default"), epsilon=10)
    protection = PromptProtection(
        finders=(Patterns(), Listed(["Zebulon Quartermaine"])),
        obfuscator=sottovoce.Obfuscator(cmp, pipeline=TextPipeline(protect="all")),
    )
    prompt = protection.protect([Message("user", PROMPT)])
    print("stays here ", PROMPT)
    print("leaves     ", prompt.texts[0])
    print("told       ", prompt.sentence)
    restorer = Restorer(prompt.table)
    shown = [restorer.feed(piece) for piece in ANSWER]
    print("comes back ", "".join(ANSWER))
    print("is shown   ", "".join([*shown, restorer.finish()]))


if __name__ == "__main__":
    main()
