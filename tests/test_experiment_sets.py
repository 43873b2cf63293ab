"""Experiments with mechanisms that send sets: their own number of queries, k and p, attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("ir_measures", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("matplotlib", reason="pip install 'sottovoce[experiments]'")

import sottovoce
from sottovoce.experiments.grid import Draw, plan, size_of
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment

DEMO = Path(sottovoce.__file__).parent / "demo"
QUERIES = 24
"""Fewer subjects than that no attacker learns."""
FILE = """
name = "sets"
[grid]
collections = ["few"]
engines = ["bm25"]
n = [6]
epsilons = [5, 20]
releases = ["once"]
mechanisms = ["cmp"]

[[mechanism]]
spec = "cover:p=0.9"
label = "by k"
parameter = "k"
values = [6, 12]
pool = "pool.txt"

[[mechanism]]
spec = "cover:k=4"
label = "by p"
parameter = "p"
values = [0.5, 0.9]
pool = "pool.txt"

[[mechanism]]
spec = "cover:k=4,p=0.9,m=3"
label = "groups"
pool = "pool.txt"

[texts]
encoder = "light"

[privacy]
similarity = ["jaccard"]
log = "demo"
attacks = ["mode"]
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "few").mkdir()
    for name, lines in (("corpus.jsonl", 718), ("queries.jsonl", QUERIES), ("qrels.txt", 600)):
        kept = (DEMO / name).read_text("utf-8").splitlines(keepends=True)[:lines]
        (folder / "few" / name).write_text("".join(kept), "utf-8")
    strings = [f"{what} in {where}" for what in THINGS for where in PLACES]
    (folder / "pool.txt").write_text("\n".join(strings), "utf-8")
    (folder / "sets.toml").write_text(FILE)
    return folder / "sets.toml"


THINGS = ("cancer", "divorce", "debt", "weather", "football", "bread", "taxes", "cars", "music")
PLACES = ("rome", "paris", "london", "oslo", "lima", "cairo", "delhi", "texas", "kenya", "wales")


def changed(file: Path, *pairs: tuple[str, str]) -> Path:
    content = FILE
    for old, new in pairs:
        assert old in content
        content = content.replace(old, new)
    other = file.with_name("other.toml")
    other.write_text(content)
    return other


def problems(file: Path) -> str:
    with pytest.raises(ExperimentError) as caught:
        read_experiment(file)
    return "\n".join(caught.value.problems)


# What is drawn and sent


def test_a_set_has_its_own_number_and_one_cell_a_point(file: Path) -> None:
    two = changed(file, ("n = [6]", "n = [6, 20]"), ('releases = ["once"]', ""))
    sources = [job.source for job in plan(read_experiment(two))[0] if isinstance(job, Draw)]
    sets = [(s.mechanism, s.epsilon, s.n, s.release) for s in sources if s.mechanism != "cmp"]
    assert sets == [
        ("by k", 6.0, 6, "once"),
        ("by k", 12.0, 12, "once"),
        ("by p", 0.5, 4, "once"),
        ("by p", 0.9, 4, "once"),
        ("groups", None, 12, "once"),
    ]
    assert {source.n for source in sources if source.mechanism == "cmp"} == {6, 20}


def test_the_plan_counts_what_sets_send(file: Path) -> None:
    size = size_of(read_experiment(file))
    sent = {mechanism: counts["queries"] for (_, mechanism), counts in size.lines.items()}
    assert sent["by k"] == QUERIES * (6 + 12)
    assert sent["by p"] == QUERIES * (4 + 4)
    assert sent["groups"] == QUERIES * 4 * 3
    assert sent["cmp"] == QUERIES * 2 * 6


def test_a_pool_too_small_for_its_sets_is_told_before_anything_runs(file: Path) -> None:
    told = problems(changed(file, ("values = [6, 12]", "values = [6, 400]")))
    assert told.startswith("mechanism 1, values: a set of k = 400")
    assert f"the pool has {len(THINGS) * len(PLACES)}" in told
    told = problems(changed(file, ("cover:k=4,p=0.9,m=3", "cover:k=4,m=3,decoys=popular")))
    assert told.startswith("mechanism 3, spec: the pool states no popularity")


def test_popular_decoys_are_checked_by_the_popularity_of_the_pool(file: Path) -> None:
    pool = file.with_name("popular.txt")
    pool.write_text("\n".join(f"query {n}" for n in range(9) for _ in range(n + 1)))
    popular = ("cover:k=4,p=0.9,m=3", "cover:k=4,p=0.9,decoys=popular")
    last = ('label = "groups"\npool = "pool.txt"', 'label = "groups"\npool = "popular.txt"')
    assert read_experiment(changed(file, popular, last)).systems[-1].set_sizes == (4,)


def test_curves_over_different_parameters_have_different_labels(file: Path) -> None:
    told = problems(changed(file, ('label = "by p"', 'label = "by k"'), ('k=4"', 'k=20"')))
    assert "mechanism 2, label: 'by k' runs over k above" in told
