"""A file is an experiment, or the list of all that is wrong with it; never anything else."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_files import WHOLE, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.encoders import strong
from sottovoce.encoders.base import shared_encoder
from sottovoce.errors import UsageError
from sottovoce.experiments.grid import plan
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.schema import reading
from sottovoce.experiments.schema.experiment import (
    Deniability,
    Downstream,
    Experiment,
    Privacy,
    Published,
    Searching,
    System,
    Texts,
    Utility,
)
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file that holds everything, beside what it names."""
    pytest.importorskip("sklearn")
    pytest.importorskip("pyarrow")
    return write_files(tmp_path_factory.mktemp("experiment"))


def read(whole, content, data=True):
    """Read another content, from the same folder."""
    file = whole.parent / "other.toml"
    file.write_text(content)
    return read_experiment(file, whole.parent / "data" if data else None)


def problems(whole, content, data=True):
    with pytest.raises(ExperimentError) as caught:
        read(whole, content, data)
    return list(caught.value.problems)


def changed(old, new):
    assert WHOLE.count(old) == 1
    return WHOLE.replace(old, new)


def test_everything_of_a_file_is_read(whole):
    folder = whole.parent
    texts = Texts.of(space=str(folder / "words"), protect="content")
    found = read_experiment(whole, folder / "data")
    once = ("independent", "once")
    assert found.systems == (
        System("cmp", "cmp", (1.0, 5.0, 10.0), once, texts),
        System(
            "vickrey-cmp:t=0.5",
            "Vickrey",
            (2.0,),
            ("once",),
            replace(texts, unknown="drop"),
        ),
        System("santext", "santext", (1.0, 5.0, 10.0), ("independent",), texts),
        System(
            "comet-cmp",
            "comet-cmp",
            (1.0, 5.0, 10.0),
            once,
            Texts.of(
                space=str(folder / "words"),
                protect="content",
                pool=str(folder / "pool.txt"),
                encoder="light",
            ),
        ),
    )
    files = tuple(str(folder / "data" / f"theirs_{each}.csv") for each in ("1", "12.5"))
    assert found.published == (Published("Theirs", files, (1.0, 12.5), "cmp"),)
    assert found.collections == ("demo", str(folder / "apples"))
    assert (found.engines, found.rerankers) == (("bm25", "dense:light"), ("light", "none"))
    assert (found.n, found.seeds) == ((3, 2), (0, 7))
    assert (found.name, found.notes, found.plotted_words) == ("whole", ("One.", "Two."), ("worda",))
    assert found.texts == texts
    assert found.searching == Searching(depth=10, pooling="rrf", kept=50)
    assert found.utility == Utility(("nDCG@5", "AP(rel=2)"), (1, 2))
    assert found.privacy == Privacy(("jaccard",), "light", "demo", ("light",), ("mode",))
    assert found.deniability == Deniability(5, 20)
    assert found.downstream == Downstream((str(folder / "task.csv"),), ("tfidf",), 10)
    assert [each.name for each in found.expected] == ["nDCG of theirs"]
    assert [each.order for each in found.expected_orders] == [("cmp", "<", "Theirs")]


def test_what_a_file_leaves_out_has_defaults(whole):
    found = read(whole, 'name = "x"\n[grid]\ncollections = ["demo"]\nengines = ["bm25"]\n')
    assert (found.rerankers, found.n, found.seeds) == (("light",), (20,), (0,))
    assert (found.searching, found.utility, found.privacy) == (Searching(), Utility(), Privacy())
    assert (found.deniability, found.downstream, found.texts) == (None, None, Texts())


def test_data_comes_from_the_environment_too(whole, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_DATA", str(whole.parent / "data"))
    assert read_experiment(whole).published
    monkeypatch.delenv("SOTTOVOCE_DATA")
    (problem,) = problems(whole, changed("[12.5, 1]", "[12.5]"), data=False)
    assert "--data" in problem


WRONG = {
    'name = "whole"': [
        ('name = "a/b"', "name: it names files"),
        ("name = 3", "name: it must be a text"),
        ("", "name: it is missing"),
        ('name = "whole"\ncolour = 1', "colour: there is no such key"),
    ],
    'collections = ["demo", "apples"]': [
        ('colections = ["demo"]', "grid.colections: there is no such key: did you mean 'coll"),
        (
            'collections = ["dmeo", "apples"]',
            "value 1: there is no collection 'dmeo': did you",
        ),
        ('collections = ["demo", "apples", "words"]', "value 3: the collection has no judged"),
        ('collections = ["demo", "apples", "data/../apples"]', "value 3: 'apples' is there"),
        ('collections = "apples"', "grid.collections: it must be a list, in brackets"),
        ('collections = ["apples", "~no-such-user/demo"]', "value 2: there is no collection"),
        ('collections = ["apples", "a\\u0000"]', "value 2: there is no collection"),
        (f'collections = ["apples", "{"a" * 5000}"]', "value 2: there is no collection"),
    ],
    'engines = ["bm25", "dense:light"]': [
        ('engines = ["bm25", "bm52"]', "value 2: there is no engine 'bm52': did you mean 'bm25'?"),
        ('engines = ["bm25", "http:x.toml"]', "value 2: http is an engine with documents of its"),
        ('engines = ["bm25", "postgres:d#t"]', "value 2: postgres is an engine with documents"),
        ('engines = ["bm25", "dense:lihgt"]', "did you mean 'light'?"),
        ('engines = ["bm25", "bm25"]', "grid.engines, value 2: 'bm25' is there twice"),
    ],
    'rerankers = ["light", "none"]': [
        ('rerankers = ["lihgt"]', "grid.rerankers, value 1: 'lihgt'"),
    ],
    'mechanisms = ["cmp"]': [
        ('mechanisms = ["cmp", "vikrey-cmp"]', "value 2, spec: unknown mechanism: did you mean 'v"),
        ('mechanisms = ["cmp", "cmp"]', "grid.mechanisms, value 2: 'cmp' is there twice"),
        ('mechanisms = ["cmp", "cmp:"]', "value 2, spec: 'cmp:' is there twice"),
    ],
    "epsilons = [10, 1, 5]": [
        ("epsilons = [10, -1]", "grid.epsilons, value 2: it must be greater than 0"),
        ("epsilons = [10, inf]", "grid.epsilons, value 2: it must be a finite number"),
        ("epsilons = [10, nan]", "grid.epsilons, value 2: it must be a finite number"),
        ("epsilons = [10, 10.0]", "grid.epsilons, value 2: '10.0' is there twice"),
        ("epsilons = []", "grid.epsilons: it must be a list, in brackets, and not empty"),
        ("", "value 1, epsilons: there are none"),
    ],
    'releases = ["independent", "once"]': [
        ('releases = ["once"]', "mechanism 2, releases: santext cannot release 'once'"),
        ('releases = ["twice"]', "grid.releases, value 1: there is no 'twice'"),
    ],
    "n = [3, 2]": [
        ("n = [0]", "grid.n, value 1: it must be greater than or equal to 1"),
        ("n = 3", "grid.n: it must be a list"),
        ("n = [true]", "grid.n, value 1: it must be a whole number"),
        ("n = [21]", "'once' reads 21 different words off one point, but the output"),
    ],
    "seeds = [0, 7]": [
        ("seeds = [7, 7]", "grid.seeds, value 2: '7' is there twice"),
        ("seeds = []", "grid.seeds: it must be a list"),
        ("seeds = [-1]", "grid.seeds, value 1: it must be greater than or equal to 0"),
    ],
    'spec = "vickrey-cmp:t=0.5"': [
        ('spec = "vickrey-cmp:t=5"', "mechanism 1, spec: t must be between 0 and 1"),
        ('spec = "vickrey-cmp:s=5"', "mechanism 1, spec: mechanism 'vickrey-cmp' has no such"),
        ('spec = "vickrey-cmp:epsilon=5"', "mechanism 1, spec: leave epsilon out of it"),
        ("", "mechanism 1, spec: it is missing"),
        ('spec = "wbb"', "mechanism 1, releases: wbb cannot release 'once'"),
        ('spec = "wbb"\nspce = "x"', "mechanism 1, spce: there is no such key: did you mean 'sp"),
    ],
    'label = "Vickrey"': [
        ('label = "cmp"', "mechanism 1, label: 'cmp' names another mechanism above"),
    ],
    'unknown = "drop"': [
        ('unknown = "dorp"', "mechanism 1, unknown: there is no 'dorp': did you mean 'drop'?"),
        ('protect = "nuon"', "mechanism 1, protect: protect has a part that is no choice"),
        ('space = "nowhere"', "mechanism 1, space: no word space 'nowhere'"),
        ('output_vocabulary = "cleen"', "mechanism 1, output_vocabulary: unknown output voc"),
        ('output_vocabulary = "file:no.txt"', "mechanism 1, output_vocabulary: there is no file"),
        (
            'output_vocabulary = "corpus:no"',
            "mechanism 1, output_vocabulary: there is no 'corpus:no'",
        ),
    ],
    'pool = "pool.txt"': [
        ("", "mechanism 3, pool: it releases strings of a public pool"),
        ('pool = "no.txt"', "mechanism 3, pool: there is no 'no.txt'"),
    ],
    'label = "Theirs"': [
        ('label = "Vickrey"', "published 1, label: 'Vickrey' names something above"),
    ],
    'files = "{data}/theirs_{epsilon}.csv"': [
        ('files = "{data}/ours_{epsilon}.csv"', "published 1, files, value 1: there is no file"),
        ('files = ["data/theirs_1.csv"]', "published 1, epsilons: there are 1 files"),
        ("files = []", "published 1, files: it must be a list, in brackets, and not empty"),
        ("files = 1", "published 1, files: it must be a list"),
    ],
    "epsilons = [12.5, 1]": [("", "published 1, epsilons: list them")],
    "kept = 50": [("kept = 3", "looks at 5 documents, and 3 of a re-ranked pool are kept")],
    "depth = 10": [("depth = 0", "search.depth: it must be greater than or equal to 1")],
    'pooling = "rrf"': [('pooling = "rff"', "search.pooling: there is no 'rff': did you mean")],
    'measures = ["nDCG@5", "AP(rel=2)"]': [
        ('measures = ["nDCG@5", "nDGC@5"]', "utility.measures, value 2: no measure 'nDGC@5'"),
        ('measures = ["nDCG@5", "nDCG@"]', "utility.measures, value 2: no measure 'nDCG@'"),
    ],
    'similarity = ["jaccard"]': [
        ('similarity = ["jaccard", "jacard"]', "privacy.similarity, value 2: there is no 'jacard'"),
    ],
    'log = "demo"': [('log = "no.tsv"', "privacy.log: there is no file 'no.tsv'")],
    'inference_encoders = ["light"]': [
        ('inference_encoders = ["light", "x/y"]', "inference_encoders, value 2: 'x/y': no such"),
    ],
    'attacks = ["mode"]': [
        ('attacks = ["mode", "mood"]', "privacy.attacks, value 2: there is no 'mood': did you"),
    ],
    "draws = 20": [("draw = 20", "deniability.draw: there is no such key: did you mean 'draws'?")],
    'tasks = ["task.csv"]': [
        ('tasks = ["tusk.csv"]', "downstream.tasks, value 1: there is no file 'tusk.csv'"),
        ("", "downstream.tasks: it is missing"),
        ('tasks = ["task.csv", "data/../task.csv"]', "value 2: 'task.csv' is there twice"),
    ],
    'models = ["tfidf"]': [
        ('models = ["tfdif"]', "downstream.models, value 1: there is no 'tfdif': did you mean"),
        ("models = []", "downstream.models: it must be a list, in brackets, and not empty"),
    ],
    'measure = "nDCG@5"': [
        ('measure = "nDCG@10"', "expected 'nDCG of theirs': it can never be measured: the plan"),
        ('measure = "jaccard"', "expected 'nDCG of theirs': it can never be measured: no cell"),
    ],
    'where = {mechanism = "Theirs", epsilon = 12.5, engine = "bm25", collection = "apples"}': [
        ('where = {mechanism = "theirs"}', "no mechanism 'theirs': did you mean 'Theirs'?"),
        ('where = {mechanism = "Theirs", epsilon = 5}', "measured: no cell of the plan has all"),
        ('where = {mechanizm = "Theirs"}', "mechanizm: there is no such column: did you mean"),
    ],
    'order = ["cmp", "<", "Theirs"]': [
        ('order = ["cmp", "<", "Ours"]', "expected 'order': it can never be measured: the plan"),
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "told"), [(old, *case) for old, cases in WRONG.items() for case in cases]
)
def test_each_mistake_is_told_with_its_place(whole, old, new, told):
    found = problems(whole, changed(old, new))
    assert any(told in each for each in found), found
    assert len(found) <= 4, "one mistake makes few problems"


def test_all_mistakes_are_told_at_once(whole):
    content = WHOLE
    for old, cases in WRONG.items():
        if old not in ('label = "Vickrey"', 'label = "Theirs"'):  # They need what is wrong now.
            content = content.replace(old, cases[0][0])
    told = "\n".join(problems(whole, content))
    places = ("name", "grid.colections", "grid.engines", "grid.rerankers", "grid.mechanisms")
    places += ("grid.epsilons", "grid.n", "grid.seeds", "mechanism 1, spec", "mechanism 1, unknown")
    places += ("published 1, epsilons", "search.depth", "search.pooling", "utility.measures")
    places += ("privacy.similarity", "privacy.log", "privacy.attacks", "deniability.draw")
    places += ("downstream.tasks", "downstream.models", "expected 'order'")
    assert [each for each in places if each not in told] == []


def test_the_message_numbers_all_problems(whole):
    with pytest.raises(UsageError, match=r"(?s)2 problems, nothing was run:\n  1\. .*\n  2\. "):
        read(whole, 'name = "x y"\n')


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"name = x", "it is not TOML: Invalid value (at line 1, column 8)"),
        (b'name = "\xff"', "it is not UTF-8"),
        (b"n = [" + b"[" * 100_000, "it is not TOML"),
        (b"n = " + b"1" * 10_000, "it is not TOML: a number is too long"),
        (b"", "nothing is to be done"),
    ],
)
def test_what_is_no_experiment_at_all(tmp_path, content, told):
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(ExperimentError) as caught:
        read_experiment(tmp_path / "x.toml")
    assert told in str(caught.value)


def test_a_missing_file_or_a_folder_is_no_experiment(tmp_path):
    for file in (tmp_path / "no.toml", tmp_path):
        with pytest.raises(ExperimentError, match="check the path"):
            read_experiment(file)


def test_experiments_of_some_steps_only(whole):
    privacy = 'name = "x"\n[grid]\ncollections = ["demo"]\nmechanisms = ["cmp"]\nepsilons = [1]\n'
    assert read(whole, privacy + '[texts]\nspace = "words"').engines == ()
    words = 'name = "x"\n[grid]\nmechanisms = ["cmp"]\nepsilons = [1]\n[deniability]\n'
    assert read(whole, words + '[texts]\nspace = "words"').collections == ()
    assert read(whole, 'name = "x"\n[downstream]\ntasks = ["task.csv"]\n').systems == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[grid]\nengines = ["bm25"]', "grid.collections: engines need documents"),
        ('[grid]\ncollections = ["demo"]', "collections alone are no experiment"),
        ('[[published]]\nlabel = "x"\nfiles = "task.csv"', "grid.collections: published releases"),
        ('[grid]\nmechanisms = ["aea"]', "nothing is to be done"),
        ("[deniability]", "deniability: it is about mechanisms"),
    ],
)
def test_what_is_missing_for_anything_to_be_done(whole, content, told):
    assert any(told in each for each in problems(whole, 'name = "x"\n' + content))


def test_one_mechanism_may_have_two_blocks_of_different_settings(whole):
    blocks = '[[mechanism]]\nspec = "cmp"\nepsilons = [{}]\nreleases = ["{}"]\n'
    start = 'name = "x"\n[grid]\ncollections = ["demo"]\n[texts]\nspace = "words"\n'
    apart = blocks.format("1, 5", "once") + blocks.format("1", "independent")
    assert [each.label for each in read(whole, start + apart).systems] == ["cmp", "cmp"]
    shared = blocks.format("1, 5", "once") + blocks.format("5", "once")
    assert "mechanism 2, spec: 'cmp' is there twice" in problems(whole, start + shared)[0]


VARIED = """
[[mechanism]]
spec = "wbb:epsilon=10,k=1"
label = "boxes"
parameter = "n"
values = [3, 2]
"""


def test_a_curve_may_run_over_another_parameter_than_epsilon(whole):
    found = read(whole, WHOLE + VARIED)
    boxes = found.systems[-1]
    assert (boxes.parameter, boxes.epsilons) == ("n", (2.0, 3.0))
    assert [boxes.spec_at(value) for value in boxes.epsilons] == [
        "wbb:epsilon=10,k=1,n=2",
        "wbb:epsilon=10,k=1,n=3",
    ]
    drawn = [job.source for job in plan(found)[0] if job.source.mechanism == "boxes"]
    assert {(source.epsilon, source.spec) for source in drawn} == {
        (2.0, "wbb:epsilon=10,k=1,n=2"),
        (3.0, "wbb:epsilon=10,k=1,n=3"),
    }
    built = ResourceCache().mechanism(drawn[0].spec, drawn[0].epsilon, drawn[0].texts)
    assert (built.epsilon, built.n) == (10, 2)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('parameter = "n"', "", "values: parameter and values belong together"),
        ("values = [3, 2]", "", "values: parameter and values belong together"),
        ('parameter = "n"', 'parameter = "m"', "parameter: wbb has no such parameter"),
        ('parameter = "n"', 'parameter = "epsilon"', "parameter: wbb has no such parameter"),
        ("epsilon=10,k=1", "k=1", "spec: say the epsilon in it"),
        ("values = [3, 2]", "values = [2.5]", "n must be a whole number"),
        (
            "values = [3, 2]",
            "values = [3, 2]\nepsilons = [1]",
            "epsilons: a curve has one parameter",
        ),
    ],
)
def test_mistakes_in_a_curve_over_another_parameter_are_told(whole, old, new, told):
    (problem,) = problems(whole, WHOLE + VARIED.replace(old, new))
    assert told in problem


def test_a_missing_strong_encoder_is_told(whole, monkeypatch):
    shared_encoder.cache_clear()
    monkeypatch.setattr(strong, "_folder", lambda: None)
    (problem,) = problems(whole, changed('rerankers = ["light", "none"]', 'rerankers = ["strong"]'))
    assert "sottovoce spaces add strong" in problem


def test_missing_packages_are_told_with_the_extra(whole, monkeypatch):
    find_spec = reading.importlib.util.find_spec
    gone = ("pyarrow", "ir_measures", "sklearn")
    monkeypatch.setattr(
        reading.importlib.util, "find_spec", lambda name: None if name in gone else find_spec(name)
    )
    told = "\n".join(problems(whole, WHOLE))
    assert told.count("pip install 'sottovoce[experiments]'") == 2
    assert "pip install 'sottovoce[lab]'" in told


def test_a_missing_space_is_told_once(whole, tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    content = changed('space = "words"\n', "")
    found = [each for each in problems(whole, content) if "spaces add default" in each]
    assert [each.partition(":")[0] for each in found] == ["texts.space"]


def test_no_content_of_data_files_is_told(whole):
    secret = whole.parent / "secret"
    secret.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt"):
        (secret / name).write_text("my secret query\n")
    found = problems(whole, changed('"apples"]\nengines', '"apples", "secret"]\nengines'))
    assert "line 1 of" in "\n".join(found)
    assert "my secret query" not in "\n".join(found)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["cmp", "demo", "once", "{data}", "{epsilon}", "../x", "~", "file:", "dense:"]),
    st.lists(st.one_of(st.integers(), st.text(max_size=4)), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
    st.just([[]]),
    st.just([{}]),
)


def places(value, path=()):
    """Every place in nested tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


MANGLED = list(places(tomllib.loads(WHOLE)))


@settings(max_examples=30)
@given(data=st.data())
def test_any_mangled_file_is_an_experiment_or_an_error_that_lists_its_problems(whole, data):
    content = tomllib.loads(WHOLE)
    for path in data.draw(st.lists(st.sampled_from(MANGLED), min_size=1, max_size=3)):
        inner = content
        try:
            for key in path[:-1]:
                inner = inner[key]
            if data.draw(st.booleans()):
                inner[path[-1]] = data.draw(ODD)
            else:
                inner[data.draw(st.text(max_size=8))] = inner.pop(path[-1])
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    with pytest.MonkeyPatch.context() as patch:  # Some of this cannot be written as TOML.
        patch.setattr(reading, "_content", lambda _: content)
        assert planned_or_told(whole)


def planned_or_told(file):
    try:
        found = read_experiment(file, file.parent / "data")
    except ExperimentError as error:
        return len(error.problems) > 0
    return isinstance(found, Experiment) and any(plan(found))


@given(noise=st.binary(max_size=40), at=st.integers(0, len(WHOLE)), cut=st.integers(0, 40))
def test_any_bytes_in_a_file_are_an_experiment_or_an_error(whole, noise, at, cut):
    file = whole.parent / "noisy.toml"
    content = WHOLE.encode()
    file.write_bytes(content[:at] + noise + content[at + cut :])
    assert planned_or_told(file)


def test_neither_a_pool_nor_a_corpus_is_read(whole, monkeypatch):
    monkeypatch.setattr("sottovoce.pools.read_strings", lambda _: 1 / 0)
    monkeypatch.setattr("sottovoce.collections.read_corpus", lambda _: 1 / 0)
    assert read_experiment(whole, whole.parent / "data").systems


PAGE = Path(__file__).parents[1] / "docs" / "experiments.md"


def test_the_file_of_the_documentation_is_an_experiment(whole, default_space):
    (content,) = re.findall(r"```toml\n(name = .*?)```", PAGE.read_text(), re.DOTALL)
    assert len(read(whole, content).systems) == 3


def test_the_mistakes_of_the_documentation_are_told_so(whole, default_space):
    content = """
    name = "wrong"
    grid.collections = ["demo"]
    grid.engines = ["bm52"]
    grid.epsilons = [5]
    mechanism = [{spec = "vikrey-cmp"}]
    utility.measures = ["P@10", "nDGC@10"]
    """
    with pytest.raises(ExperimentError) as caught:
        read(whole, content)
    assert str(caught.value) in PAGE.read_text()
