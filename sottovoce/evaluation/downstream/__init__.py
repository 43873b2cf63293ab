"""What a model that learns from, or is asked with, obfuscated texts still gets right."""

from sottovoce.evaluation.downstream.data import (
    Candidates,
    LabelledTexts,
    Questions,
    judged_questions,
    read_task,
)
from sottovoce.evaluation.downstream.run import evaluate, experiment
from sottovoce.evaluation.downstream.scores import Outcome, Score, Setting, summarize

__all__ = [
    "Candidates",
    "LabelledTexts",
    "Outcome",
    "Questions",
    "Score",
    "Setting",
    "evaluate",
    "experiment",
    "judged_questions",
    "read_task",
    "summarize",
]
