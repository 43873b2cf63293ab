"""Write the figures that the app shows for the demo collection to whoever has run no experiment.

Run the experiment first: sottovoce experiment run examples/app-experiment.toml --out FOLDER. Then
python tools/measured_figures.py FOLDER writes sottovoce/app/measured.json anew.
"""

from __future__ import annotations

import json
import sys

from sottovoce.app.measured import PACKAGED
from sottovoce.experiments.results import Results
from sottovoce.experiments.summary import summarize
from sottovoce.files import write_whole


def main(folder: str) -> None:
    """Write what the experiment in a folder measured."""
    summaries = summarize(Results(folder))
    write_whole(PACKAGED, (json.dumps(summaries, indent=1) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1])
