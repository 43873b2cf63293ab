"""Write what ``sottovoce audit --quick`` says of each mechanism with its usual parameters.

python tools/audit_verdicts.py writes sottovoce/app/verdicts.json anew, in some minutes. The page
shows these verdicts with their date. They are those of the default space, the demo
collection (for ``fea``) and the demo log (for ``comet``).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from sottovoce import __version__
from sottovoce.app.descriptions import VERDICTS
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.settings import Settings
from sottovoce.files import write_whole
from sottovoce.mechanisms.build import names
from sottovoce.privacy import Audit, audit

SEED = 1


def in_short(result: Audit) -> dict[str, Any]:
    """An audit in short; ``why`` is what refuted a claim."""
    refuting = [finding for finding in result.findings if finding.verdict == "REFUTED"]
    return {
        "mechanism": result.mechanism,
        "verdict": result.verdict,
        "claims": [
            {
                "label": claim.label,
                "verdict": claim.verdict,
                "sentence": claim.guarantee.sentence,
            }
            for claim in result.claims
        ],
        "why": refuting[0].sentence if refuting else None,
    }


def main() -> None:
    """Audit every mechanism, and write down what came of it."""
    parts = LoadedParts(Settings())
    verdicts = {}
    for name in names():
        result = audit(parts.mechanism(name, {}), rng=SEED, quick=True)
        verdicts[name] = in_short(result)
        sys.stderr.write(f"{name}: {result.verdict}\n")
    content = {
        "by": f"sottovoce audit --quick --seed {SEED}, sottovoce {__version__}",
        "made": datetime.now(UTC).date().isoformat(),
        "space": parts.space().name,
        "mechanisms": verdicts,
    }
    write_whole(VERDICTS, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
