"""scikit-learn: a classifier that learns from obfuscated texts alone, and what that costs."""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sottovoce.collections import load_collection
from sottovoce.integrations.scikit_learn import TextObfuscator

EPSILONS = (10.0, 25.0)
EACH = 12
"""Documents of each subject."""


def main() -> None:
    """Tell passages on courts from passages on pregnancy, by what a mechanism left of them."""
    documents = load_collection("demo").documents
    texts = [
        text
        for subject in ("court", "pregnan")
        for text in [doc.text for doc in documents if subject in doc.text][:EACH]
    ]
    labels = [0] * EACH + [1] * EACH
    model = make_pipeline(TextObfuscator("cmp"), TfidfVectorizer(), LogisticRegression())
    for epsilon in EPSILONS:
        model.set_params(textobfuscator__epsilon=epsilon)
        accuracy = cross_val_score(model, texts, labels, cv=3).mean()
        print(f"epsilon {epsilon:g}: {accuracy:.2f} of the passages are told apart")

    released, report = TextObfuscator("cmp", epsilon=10).fit(texts).release(texts[:1])
    print(released[0])
    print(report.counts.changed, "of", report.counts.words, "words changed")


if __name__ == "__main__":
    main()
