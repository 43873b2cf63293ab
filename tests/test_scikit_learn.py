"""The contract of a scikit-learn transformer, which its own checks do not hold strings to."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from integration_data import SECRET, WORDS, Hostile, cmp

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.obfuscation import SEEDED
from sottovoce.text import TextPipeline

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sottovoce.integrations.scikit_learn import TextObfuscator

TEXTS = [f"{' '.join(WORDS[i : i + 8])} {SECRET}" for i in range(20)]
LABELS = [i % 2 for i in range(20)]


def test_parameters_are_got_and_set_and_cloned():
    pipeline = TextPipeline(unknown="drop")
    first = TextObfuscator(cmp(), epsilon=3, pipeline=pipeline, deny=("anna",), random_state=4)
    assert set(first.get_params()) == {"mechanism", "epsilon", "pipeline", "deny", "random_state"}
    copy = clone(first)
    assert copy.get_params() == first.get_params()
    assert not hasattr(copy, "sanitizer_")
    copy.set_params(epsilon=9, random_state=None)
    assert copy.fit(TEXTS).sanitizer_.mechanism.epsilon == 9
    assert first.epsilon == 3
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(nonsense=1)
    assert TextObfuscator("cmp:epsilon=4").get_params()["mechanism"] == "cmp:epsilon=4"


def test_secure_by_default_and_seeds_are_stamped():
    secure = TextObfuscator(cmp()).fit(TEXTS)
    assert list(secure.transform(TEXTS)) != list(secure.transform(TEXTS))
    assert not secure.seeded_
    assert SEEDED not in secure.guarantee_.caveats
    seeded = TextObfuscator(cmp(), random_state=1).fit(TEXTS)
    assert list(seeded.transform(TEXTS)) == list(clone(seeded).fit_transform(TEXTS))
    assert seeded.seeded_
    assert SEEDED in seeded.guarantee_.caveats
    np.random.seed(0)  # noqa: NPY002 - it must not matter
    drawn = list(secure.transform(TEXTS))
    np.random.seed(0)  # noqa: NPY002
    assert list(secure.transform(TEXTS)) != drawn


def test_shapes_kinds_and_gaps_stay():
    pd = pytest.importorskip("pandas")
    subject = TextObfuscator(cmp(), random_state=1)
    texts = ["wordaa wordab", None, "", SECRET]
    plain = subject.fit_transform(texts)
    assert (plain.shape, plain[1], plain[2]) == ((4,), None, "")
    assert SECRET not in plain
    assert list(subject.fit_transform(np.array(texts, dtype=object))) == list(plain)
    rows = subject.fit_transform([["wordaa", "wordab"], ["wordba", None]])
    assert (rows.shape, rows[1][1]) == ((2, 2), None)
    assert list(subject.get_feature_names_out()) == ["x0", "x1"]
    series = subject.fit_transform(pd.Series(texts, index=[3, 3, 1, 0], name="said"))
    assert (series.name, list(series.index), pd.isna(series.iloc[1])) == (
        "said",
        [3, 3, 1, 0],
        True,
    )
    frame = pd.DataFrame({"a": ["wordaa"], "b": ["wordbb"]})
    new = subject.fit_transform(frame)
    assert list(new.columns) == list(subject.get_feature_names_out()) == ["a", "b"]
    assert frame["a"][0] == "wordaa"
    assert subject.fit([]).transform([]).shape == (0,)


def test_what_was_not_fitted_is_refused():
    pd = pytest.importorskip("pandas")
    subject = TextObfuscator(cmp())
    with pytest.raises(NotFittedError):
        subject.transform(TEXTS)
    with pytest.raises(UsageError, match="single string"):
        subject.fit(SECRET)
    fitted = subject.fit(pd.DataFrame({"a": TEXTS, "b": TEXTS}))
    for other in (TEXTS, pd.DataFrame({"b": TEXTS, "a": TEXTS}), [["x", "y", "z"]]):
        with pytest.raises(UsageError, match="fit it"):
            fitted.transform(other)
    with pytest.raises(UsageError, match="must be a str"):
        TextObfuscator(cmp()).fit(TEXTS).transform([1.5])


@pytest.mark.parametrize("random_state", [None, 1])
def test_it_pickles(random_state):
    fitted = TextObfuscator(cmp(), random_state=random_state).fit(TEXTS)
    content = pickle.dumps(fitted)
    assert SECRET.encode() not in content, "texts are kept"
    drawn = [list(pickle.loads(content).transform(TEXTS)) for _ in range(2)]
    assert (drawn[0] == drawn[1]) is (random_state is not None)


def test_pipelines_columns_and_searches_over_epsilon():
    pd = pytest.importorskip("pandas")
    model = make_pipeline(
        TextObfuscator(cmp(), random_state=1), CountVectorizer(), LogisticRegression()
    )
    assert model.fit(TEXTS, LABELS).predict(TEXTS).shape == (20,)
    assert SECRET not in model[1].vocabulary_
    search = GridSearchCV(model, {"textobfuscator__epsilon": [1.0, 50.0]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert search.best_params_["textobfuscator__epsilon"] in (1.0, 50.0)
    frame = pd.DataFrame({"said": TEXTS, "number": range(20)})
    one = ColumnTransformer(
        [("words", make_pipeline(TextObfuscator(cmp()), CountVectorizer()), "said")]
    )
    assert one.fit_transform(frame).shape[0] == 20
    several = ColumnTransformer(
        [("texts", TextObfuscator(cmp()), ["said"])], remainder="passthrough"
    ).set_output(transform="pandas")
    new = several.fit_transform(frame)
    assert list(new.columns) == ["texts__said", "remainder__number"]
    assert not new["texts__said"].str.contains(SECRET).any()


def test_a_report_comes_along_where_it_is_asked_for():
    fitted = TextObfuscator(cmp(), pipeline=TextPipeline(unknown="drop"), deny=("wordaa",))
    new, report = fitted.fit(TEXTS).release(TEXTS)
    assert len(new) == report.counts.texts == 20
    assert report.counts.dropped == 20
    assert report.counts.denied == 1
    assert not any("wordaa" in text for text in new)


def test_a_failure_gives_no_text_back():
    model = make_pipeline(TextObfuscator(Hostile()), CountVectorizer())
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        model.fit(TEXTS)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
