"""Small tasks with a clear answer, for tests of downstream tasks."""

from __future__ import annotations

from itertools import product

from sottovoce.evaluation.downstream.data import Candidates, LabelledTexts, Questions

THINGS = ("film", "book", "hotel", "dinner", "garden", "concert", "journey", "lesson")
GOOD = (
    "the {} was wonderful and we loved it",
    "what a lovely {} , so beautiful and charming",
    "an excellent {} , truly delightful",
    "we enjoyed this superb {} , perfect and wonderful",
    "this {} is beautiful , excellent and fun",
    "a charming {} that we loved and enjoyed",
    "delightful {} , superb in every way",
    "lovely and perfect , the best {} of all",
)
BAD = (
    "the {} was terrible and we hated it",
    "what an awful {} , so boring and stupid",
    "a horrible {} , truly dreadful",
    "we regretted this terrible {} , boring and awful",
    "this {} is ugly , dull and stupid",
    "a dreadful {} that we hated and regretted",
    "horrible {} , ugly in every way",
    "dull and disgusting , the worst {} of all",
)
ANSWERS = {
    "how do i bake fresh bread": "knead the dough , let the yeast rise and bake the bread",
    "what should i feed my young cat": "a kitten eats small meals of meat ; a cat drinks water",
    "when do apple trees blossom": "apple trees blossom in spring , before the leaves are out",
    "why is the moon red tonight": "the shadow of the earth makes the moon look red",
    "how do i repair a bicycle tyre": "find the hole in the tyre and glue a patch on it",
    "where do swallows spend winter": "swallows fly to africa for the winter and return in april",
}


def reviews() -> LabelledTexts:
    """128 short reviews, half of them good; the words tell which."""
    sides = (("good", GOOD), ("bad", BAD))
    rows = [
        (pattern.format(thing), label)
        for label, patterns in sides
        for pattern, thing in product(patterns, THINGS)
    ]
    return LabelledTexts(tuple(text for text, _ in rows), tuple(label for _, label in rows))


def questions() -> Questions:
    """Six questions; each has one right answer among six, which shares words with it."""
    every = tuple(ANSWERS.values())
    return Questions(
        tuple(
            Candidates(question, every, tuple(answer == right for answer in every))
            for question, right in ANSWERS.items()
        )
    )
