"""Presidio: names that were found become other words, alike within a document."""

from __future__ import annotations

from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import RecognizerResult

import sottovoce
from sottovoce.integrations.presidio import SottovoceOperator, operator_config

TEXT = "Anna has diabetes. Anna lives in Lyon."


def main() -> None:
    """Replace what an analyzer found; here it is written down, so that no model is needed."""
    entities = [
        RecognizerResult("PERSON", 0, 4, 0.9),
        RecognizerResult("CONDITION", 9, 17, 0.9),
        RecognizerResult("PERSON", 19, 23, 0.9),
        RecognizerResult("LOCATION", 33, 37, 0.9),
    ]
    engine = AnonymizerEngine()
    engine.add_anonymizer(SottovoceOperator)
    obfuscator = sottovoce.Obfuscator(sottovoce.mechanism("cmp", epsilon=5))
    for_this_document = operator_config(obfuscator, consistent=True)
    print(engine.anonymize(TEXT, entities, {"DEFAULT": for_this_document}).text)


if __name__ == "__main__":
    main()
