"""Hugging Face data sets: each map draws anew, whatever is in the cache."""

from __future__ import annotations

import datasets

import sottovoce
from sottovoce.integrations import dataset_function
from sottovoce.sanitizing import Sanitizer


def main() -> None:
    """Two releases of the same rows."""
    data = datasets.Dataset.from_dict({"text": ["My doctor says it is melanoma."], "label": [1]})
    obfuscator = sottovoce.Obfuscator(sottovoce.mechanism("cmp", epsilon=10))
    function = dataset_function(Sanitizer(obfuscator, columns=("text",)))
    for _ in range(2):
        print(data.map(function, batched=True, with_indices=True)[0])


if __name__ == "__main__":
    main()
