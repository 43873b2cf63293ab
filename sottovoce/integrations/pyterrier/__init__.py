"""PyTerrier: obfuscated queries in a pipeline, and privacy beside effectiveness in one table.

    private = obfuscate >> retriever >> PoolVariants(obfuscate) >> Rerank(reranker)

The retriever may be any of PyTerrier's: it gets random ids and obfuscated queries, and no other
column. The true queries stay with ``obfuscate``, in memory, until the answers are pooled.
"""

from sottovoce.integrations.pyterrier.experiment import private_experiment
from sottovoce.integrations.pyterrier.frames import qrels, topics
from sottovoce.integrations.pyterrier.obfuscating import Obfuscate
from sottovoce.integrations.pyterrier.ranking import PoolVariants, Rerank, Retrieve

__all__ = [
    "Obfuscate",
    "PoolVariants",
    "Rerank",
    "Retrieve",
    "private_experiment",
    "qrels",
    "topics",
]
