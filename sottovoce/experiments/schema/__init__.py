"""The file of an experiment: its tables, how it is read and checked, and what it describes."""

from sottovoce.errors import need

need("pydantic", "experiments", "experiments need an extra")
