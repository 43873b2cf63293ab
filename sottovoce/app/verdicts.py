"""What ``sottovoce audit --quick`` says of each mechanism with its usual parameters.

    python -m sottovoce.app.verdicts        writes verdicts.json anew, in some minutes

The page shows these verdicts with their date. They are those of the default space, the demo
collection (for ``fea``) and the demo log (for ``comet``).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from sottovoce import __version__
from sottovoce.app.describing import VERDICTS
from sottovoce.app.settings import Settings
from sottovoce.app.state import Workbench
from sottovoce.files import write_whole
from sottovoce.mechanisms.registry import names
from sottovoce.privacy import Audit, audit

SEED = 1


def verdict(found: Audit) -> dict[str, Any]:
    """An audit in short; ``why`` is what refuted a claim."""
    refuted = [each for each in found.findings if each.verdict == "REFUTED"]
    return {
        "mechanism": found.mechanism,
        "verdict": found.verdict,
        "claims": [
            {
                "label": each.label,
                "verdict": each.verdict,
                "sentence": each.guarantee.sentence,
            }
            for each in found.claims
        ],
        "why": refuted[0].sentence if refuted else None,
    }


def main() -> None:
    """Audit every mechanism, and write down what came of it."""
    bench = Workbench(Settings())
    found = {}
    for name in names():
        result = audit(bench.mechanism(name, {}), rng=SEED, quick=True)
        found[name] = verdict(result)
        sys.stderr.write(f"{name}: {result.verdict}\n")
    told = {
        "by": f"sottovoce audit --quick --seed {SEED}, sottovoce {__version__}",
        "made": datetime.now(UTC).date().isoformat(),
        "space": bench.space().name,
        "mechanisms": found,
    }
    write_whole(VERDICTS, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
