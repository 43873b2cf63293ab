"""The cells of an experiment: all of the grid, each once, in an order that shares work."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby, product

import pytest
from experiment_files import write_files
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import UsageError
from sottovoce.experiments.grid import (
    Baseline,
    Deny,
    Draw,
    Leak,
    Learn,
    Neighbours,
    Search,
    plan,
    size_of,
)
from sottovoce.experiments.schema.experiment import (
    Deniability,
    Downstream,
    Experiment,
    Privacy,
    Published,
    System,
    Texts,
)
from sottovoce.experiments.store import check_folder


def experiment(**changes):
    texts = Texts.of(space="small")
    both = ("independent", "once")
    return replace(
        Experiment(
            name="x",
            description="",
            notes=(),
            collections=("demo", "/data/apples"),
            engines=("bm25", "dense:light"),
            rerankers=("light", "none"),
            systems=(
                System("cmp", "CMP", (1.0, 5.0), both, texts),
                System("santext", "SanText", (1.0,), ("independent",), texts),
                System("aea", "aea", (None,), ("independent",), texts),
                System("fea", "fea", (None,), ("independent",), texts),
            ),
            published=(Published("Theirs", ("a.csv", "b.csv"), (1.0, 5.0), "cmp"),),
            n=(3, 20),
            seeds=(4, 2),
            texts=Texts.of(space="shared"),
            deniability=Deniability(5, 20),
            downstream=Downstream(("one.csv", "two.csv")),
            plotted_words=("cancer",),
        ),
        **changes,
    )


def cells(of, kind):
    return [job for stage in plan(of) for job in stage if isinstance(job, kind)]


def test_the_whole_grid_is_drawn():
    drawn = [job.source for job in cells(experiment(), Draw)]
    ours = {
        (source.collection, source.mechanism, source.epsilon, source.release, source.n, source.seed)
        for source in drawn
        if source.file is None
    }
    settings = [("CMP", eps, release) for eps in (1.0, 5.0) for release in ("independent", "once")]
    settings += [("SanText", 1.0, "independent"), ("aea", None, "independent")]
    settings += [("fea", None, "independent")]
    places = product(("demo", "/data/apples"), settings, (3, 20), (4, 2))
    assert ours == {(where, *setting, n, seed) for where, setting, n, seed in places}
    assert all(source.texts == Texts.of(space="small") for source in drawn if source.file is None)


def test_published_releases_are_read_once_whatever_the_seeds():
    theirs = [job.source for job in cells(experiment(), Draw) if job.source.file is not None]
    assert len(theirs) == 2 * 2 * 2
    assert {(each.file, each.epsilon) for each in theirs} == {("a.csv", 1.0), ("b.csv", 5.0)}
    assert {(each.release, each.seed, each.spec) for each in theirs} == {("independent", 0, "cmp")}
    assert {each.texts for each in theirs} == {Texts.of(space="shared")}


def test_every_source_is_searched_by_every_engine_and_attacked_once():
    of = experiment()
    sources = [job.source for job in cells(of, Draw)]
    searched = [(job.source, job.engine, job.reranker) for job in cells(of, Search)]
    assert Counter(searched) == Counter(product(sources, of.engines, of.rerankers))
    assert Counter(job.source for job in cells(of, Leak)) == Counter(sources * kinds(of.privacy))
    baselines = [(job.collection, job.engine, job.reranker) for job in cells(of, Baseline)]
    assert Counter(baselines) == Counter(product(of.collections, of.engines, of.rerankers))


def kinds(privacy):
    """Similarity, query inference by each encoder and by words, recovery of words."""
    inference = len(privacy.inference_encoders) + ("means" in privacy.attacks) if privacy.log else 0
    return bool(privacy.similarity) + inference + bool({*privacy.attacks} - {"means"})


def test_one_more_attack_repeats_neither_similarity_nor_inference():
    of = experiment(privacy=Privacy(log="demo", attacks=("mode", "uniform")))
    more = replace(of.privacy, attacks=(*of.privacy.attacks, "aligned"))
    new = set(cells(experiment(privacy=more), Leak)) - set(cells(of, Leak))
    assert {job.privacy.similarity for job in new} == {()}
    assert {job.privacy.inference_encoders for job in new} == {()}
    assert {job.privacy.log for job in new} == {"demo"}
    by_words = replace(of.privacy, attacks=(*of.privacy.attacks, "means"))
    new = set(cells(experiment(privacy=by_words), Leak)) - set(cells(of, Leak))
    assert {job.privacy.attacks for job in new} == {("means",)}


def test_deniability_is_of_word_mechanisms_once_an_epsilon():
    denied = [(job.mechanism, job.epsilon, job.seed) for job in cells(experiment(), Deny)]
    assert denied == [("CMP", 1.0, 4), ("CMP", 5.0, 4), ("SanText", 1.0, 4)]
    (near,) = cells(experiment(), Neighbours)
    assert (near.texts, near.words, near.plotted) == (Texts.of(space="small"), 5, ("cancer",))
    assert cells(experiment(deniability=None), Deny) == []
    assert len(cells(experiment(deniability=None), Neighbours)) == 1
    assert cells(experiment(deniability=None, plotted_words=()), Neighbours) == []


def test_tasks_are_learnt_clean_and_by_every_mechanism_that_needs_no_corpus():
    learnt = cells(experiment(), Learn)
    clean = [(job.task, job.seed) for job in learnt if job.spec is None]
    assert Counter(clean) == Counter(product(("one.csv", "two.csv"), (4, 2)))
    systems = [("CMP", 1.0), ("CMP", 5.0), ("SanText", 1.0), ("aea", None)]
    ours = [(job.task, (job.mechanism, job.epsilon), job.seed) for job in learnt if job.spec]
    assert Counter(ours) == Counter(product(("one.csv", "two.csv"), systems, (4, 2)))
    assert all(job.downstream.tasks == (job.task,) for job in learnt)


def test_another_task_leaves_the_cells_of_the_first_as_they_are():
    one = cells(experiment(downstream=Downstream(("one.csv",))), Learn)
    assert set(one) < set(cells(experiment(), Learn))


def test_variants_come_before_all_that_needs_them():
    first, second = plan(experiment())
    assert {type(job) for job in first} == {Draw}
    assert Draw not in {type(job) for job in second}
    assert {job.source for job in second if isinstance(job, Search | Leak)} == {
        job.source for job in first
    }


def test_cells_that_share_an_engine_stand_together():
    _, second = plan(experiment())
    searches = [job for job in second if isinstance(job, Search | Baseline)]
    used = [(getattr(job, "source", job).collection, job.engine, job.reranker) for job in searches]
    runs = [place for place, _ in groupby(used)]
    assert len(runs) == len(set(runs)) == 8


def test_no_privacy_wanted_is_no_cell():
    nothing = Privacy(similarity=(), attacks=())
    assert cells(experiment(privacy=nothing), Leak) == []
    assert cells(experiment(privacy=replace(nothing, log="demo")), Leak)
    assert cells(experiment(privacy=replace(nothing, similarity=("jaccard",))), Leak)


AXES = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3, unique=True).map(tuple)


@given(epsilons=AXES, n=AXES, seeds=AXES, two_blocks=st.booleans())
def test_no_cell_is_there_twice_and_the_order_is_always_the_same(epsilons, n, seeds, two_blocks):
    systems = [System("cmp", "cmp", tuple(map(float, epsilons)), ("independent",))]
    if two_blocks:
        systems.append(replace(systems[0], releases=("once",)))
    of = experiment(systems=tuple(systems), n=n, seeds=seeds)
    jobs = [job for stage in plan(of) for job in stage]
    assert len(jobs) == len(set(jobs))
    assert plan(of) == plan(of)
    assert len(cells(of, Deny)) == len(epsilons)


def test_the_size_counts_cells_variants_and_queries(tmp_path):
    write_files(tmp_path)
    apples = str(tmp_path / "apples")  # It has one judged query.
    of = experiment(collections=(apples,), downstream=None, published=())
    size = size_of(of)
    noise = size.lines["apples", "CMP"]
    assert (noise["draw"], noise["search"], noise["privacy"]) == (16, 64, 16 * kinds(of.privacy))
    assert noise["variants"] == 2 * 2 * 2 * (3 + 20)
    assert noise["queries"] == 4 * noise["variants"]
    assert size.lines["apples", ""]["queries"] == 4
    assert size.lines["words", "CMP"]["words"] == 2
    assert size.total("cells") == sum(map(len, plan(of)))
    assert size.to_dict()["cells"] == size.total("cells")


def test_published_variants_are_not_drawn(tmp_path):
    write_files(tmp_path)
    of = experiment(collections=(str(tmp_path / "apples"),), systems=(), deniability=None)
    theirs = size_of(of).lines["apples", "Theirs"]
    assert [theirs[count] for count in ("draw", "variants", "queries")] == [4, 0, 2 * 4 * (3 + 20)]


def test_a_folder_is_its_own_experiments_alone(tmp_path):
    check_folder(tmp_path / "new", "x")
    check_folder(tmp_path, "x")
    (tmp_path / ".lock").touch()
    (tmp_path / "cells").mkdir()
    (tmp_path / ".experiment.toml.growing").touch()  # Killed while it wrote the very first file.
    check_folder(tmp_path, "x")
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(UsageError, match="nothing of yours is overwritten"):
        check_folder(tmp_path, "x")
    (tmp_path / "experiment.toml").write_text('name = "x"\n')
    check_folder(tmp_path, "x")
    (tmp_path / "experiment.toml").write_text('name = "y"\n')
    with pytest.raises(UsageError, match="holds another experiment, 'y'"):
        check_folder(tmp_path, "x")
    (tmp_path / "experiment.toml").write_text("name = ")
    with pytest.raises(UsageError, match="an experiment without a name"):
        check_folder(tmp_path, "x")
    with pytest.raises(UsageError, match="names a file"):
        check_folder(tmp_path / "thesis.doc", "x")
