"""PyTerrier itself, or what to type where it is missing."""

from sottovoce.errors import need

need("pyterrier", "pyterrier", "these transformers need PyTerrier")

import pandas as pd  # noqa: E402
import pyterrier as pt  # noqa: E402

__all__ = ["pd", "pt"]
