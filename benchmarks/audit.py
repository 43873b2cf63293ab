"""How long the exact audit of every two words takes, and how much memory: prints both.

    python benchmarks/audit.py [SPEC…]

Each spec (santext at several epsilons unless given) runs on the default space.
"""

from __future__ import annotations

import resource
import sys
import time

from sottovoce import load_space, mechanism
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.privacy.auditing.all_pairs import all_pairs
from sottovoce.privacy.auditing.findings import claims
from sottovoce.threads import threads

SPECS = [f"santext:epsilon={epsilon}" for epsilon in (1, 2, 3, 5, 10)]


def main() -> None:
    """Audit, time and print."""
    space = load_space("glove-840b-34k")
    print(f"{space.size:,} words, {threads()} threads")
    for spec in sys.argv[1:] or SPECS:
        chosen = mechanism(spec, space=space)
        assert isinstance(chosen, ExponentialMechanism)
        wall, cpu = time.perf_counter(), time.process_time()
        found = all_pairs(chosen, claims(chosen)[0], lambda _: None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        assert found is not None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{spec}: {found.verdict}, tight epsilon {found.figures['tight_epsilon']:.3f}, "
            f"largest log-ratio {found.figures['largest_log_ratio']:.1f}, "
            f"{found.figures['pairs']:,} ordered pairs in {wall:.0f} s "
            f"({cpu:.0f} s of processor time), peak {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main()
