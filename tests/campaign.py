"""Run a campaign of tests for as long as you like, or go on with one: see ``campaigns``."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import tempfile
from pathlib import Path

from campaigns.frame import Progress, generator, run

NAMES = ("leak", "kill", "fuzz", "soak", "supply")


def main() -> int:
    """Exit status 1 if anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="A campaign that was stopped goes on when it is typed again."
    )
    parser.add_argument("campaign", choices=NAMES)
    parser.add_argument("--count", type=int, default=1000, help="stop after so many units")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    parser.add_argument("--out", type=Path, default=Path("results/campaigns"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", help="a defect, to see it caught; nothing is saved then")
    parser.add_argument("--trial", type=int, help="this trial alone; nothing is saved then")
    options = parser.parse_args()
    # Ended from outside, or started in the background: servers are stopped all the same.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    module = importlib.import_module(f"campaigns.{options.campaign}")
    if options.plant is not None and options.plant not in module.PLANTS:
        parser.error(f"--plant is one of {', '.join(module.PLANTS)}")
    with (
        tempfile.TemporaryDirectory(prefix="campaign-") as folder,
        module.opened(Path(folder), options.plant) as campaign,
    ):
        progress = Progress(options.campaign, options.seed, campaign.unit)
        if options.trial is not None:
            progress.trials = options.trial
            progress.add(campaign.trial(options.trial, generator(options.seed, options.trial)))
        else:
            file = None
            if options.plant is None:
                options.out.mkdir(parents=True, exist_ok=True)
                file = options.out / f"{options.campaign}-{options.seed}.json"
                if file.exists():
                    progress = Progress.load(file)
            try:
                run(
                    campaign,
                    progress,
                    count=options.count,
                    minutes=options.minutes,
                    file=file,
                    tell=lambda line: print(line, flush=True),
                )
            except KeyboardInterrupt:
                print("stopped; typed again it goes on", file=sys.stderr)
    print(progress.report())
    return int(progress.found > 0)


if __name__ == "__main__":
    sys.exit(main())
