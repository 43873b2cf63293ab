"""What the cells of an experiment compute: what the library computes, and nothing else."""

from __future__ import annotations

import csv
import json
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_tasks import questions, reviews

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.collections import load_collection
from sottovoce.encoders import load_encoder
from sottovoce.engines import choose_engine
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation import evaluate, read_task
from sottovoce.evaluation.search_quality import with_more_depth, with_privacy, without_privacy
from sottovoce.experiments.cells import search, words
from sottovoce.experiments.cells.leak import ATTACKER_SEED, NOTHING_RELEASED
from sottovoce.experiments.cells.runner import CellRunner
from sottovoce.experiments.cells.search import SENT_AT_A_TIME
from sottovoce.experiments.grid import (
    Baseline,
    Deny,
    Draw,
    Leak,
    Learn,
    Neighbours,
    Search,
    Source,
)
from sottovoce.experiments.schema.experiment import (
    Deniability,
    Downstream,
    Privacy,
    Searching,
    Texts,
    Utility,
)
from sottovoce.experiments.tables import ON_SETS, SCHEMAS
from sottovoce.privacy import attack
from sottovoce.privacy.attacks.cosine import infer
from sottovoce.privacy.attacks.query_log import QueryLog, read_log
from sottovoce.privacy.attacks.reasons import NO_MECHANISM, WHOLE_TEXTS
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.word_means import COMPARED
from sottovoce.privacy.plausible_deniability import deniability, neighbour_distances
from sottovoce.privacy.text_similarity import similarity
from sottovoce.privacy.word_samples import sample_words
from sottovoce.search.private_search import PrivateSearch
from sottovoce.search.reranking import load_reranker
from sottovoce.threads import set_threads

DEMO = Path(load_collection.__code__.co_filename).parent / "demo"
UTILITY = Utility(measures=("nDCG@10", "P@10"), thresholds=(1, 2))
SEARCHING = Searching(depth=10, kept=15)
PRIVACY = Privacy(similarity_encoder="light", log="demo")
SPACE = "glove-840b-34k"
GLOVE = Texts.of(space=SPACE)


def source(spec: str = "cmp", epsilon: float | None = 12.0, **other) -> Source:
    said = {
        "collection": "demo",
        "mechanism": spec,
        "epsilon": epsilon,
        "release": "independent",
        "n": 3,
        "seed": 7,
        "spec": spec,
        "file": None,
        "texts": GLOVE,
    }
    return Source(**said | other)


def drawn(runner: CellRunner, of: Source) -> Source:
    """The source, once its variants lie where the other steps look for them."""
    product = runner.run(Draw(of))
    folder = runner._store.folder / "variants"
    folder.mkdir(exist_ok=True)
    pq.write_table(product.table, folder / f"{runner.key(Draw(of))}.parquet")
    return of


def values(product, **where) -> dict[str, dict[str, float]]:
    """Values by measure and query (word, item)."""
    assert product.table.schema.names == list(SCHEMAS[product.kind])
    found: dict[str, dict[str, float]] = {}
    name = {"queries": "query_id", "words": "word", "tasks": "item"}[product.kind]
    for row in product.table.to_pylist():
        if all(row[column] == value for column, value in where.items()):
            by_query = found.setdefault(row["measure"], {})
            assert row[name] not in by_query
            by_query[row[name]] = row["value"]
    return found


def few_queries(folder: Path, count: int, documents: int = 718) -> str:
    """The demo collection with its first queries alone."""
    folder.mkdir()
    for name, lines in (("corpus.jsonl", documents), ("queries.jsonl", count), ("qrels.txt", 600)):
        kept = (DEMO / name).read_text("utf-8").splitlines(keepends=True)[:lines]
        (folder / name).write_text("".join(kept), "utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def runner(default_space, tmp_path_factory) -> CellRunner:
    return CellRunner(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="module")
def few_words(everyday_words) -> Texts:
    """Words of the demo collection alone leave, and not all are known: their law comes soon."""
    return Texts.of(space=str(everyday_words.folder), output_vocabulary="demo")


@pytest.fixture(scope="module")
def cmp(runner, few_words) -> Source:
    return drawn(runner, source(texts=few_words))


def obfuscator(spec: str = "cmp:epsilon=12", **other) -> Obfuscator:
    return Obfuscator(mechanism(spec, space=load_space(SPACE)), **{"n": 3, "rng": 7} | other)


# Drawing


def test_variants_are_those_of_the_obfuscator(runner):
    product = runner.run(Draw(source()))
    queries = load_collection("demo").queries
    expected = [
        {"query_id": query, "number": number, "variant": variant}
        for query, found in zip(queries, obfuscator().obfuscate(queries.values()), strict=True)
        for number, variant in enumerate(found.variants, start=1)
    ]
    assert product.table.to_pylist() == expected
    assert product.kind == "variants"
    assert not set(queries.values()) & set(product.table["variant"].to_pylist())


def test_settings_of_texts_reach_the_variants(runner):
    queries = load_collection("demo").queries
    texts = Texts.of(space=SPACE, output_vocabulary="clean", unknown="drop", protect="content")
    product = runner.run(Draw(source(release="once", texts=texts)))
    space = runner._cache.space(Texts.of(space=SPACE, output_vocabulary="clean"))
    assert len(space.output) < space.size
    from sottovoce.text import TextPipeline

    expected = Obfuscator(
        mechanism("cmp", space=space, epsilon=12),
        n=3,
        release="once",
        rng=7,
        pipeline=TextPipeline(unknown="drop", protect="content"),
    ).obfuscate(queries.values())
    assert product.table["variant"].to_pylist() == [v for each in expected for v in each.variants]


def test_fea_reads_its_words_off_the_collection(runner, wordnet, tmp_path):
    few, spec = few_queries(tmp_path / "few", 2), "fea:window=4,terms=2,targets=3"
    product = runner.run(Draw(source(spec, None, collection=few, n=5)))
    engine = choose_engine("bm25", load_collection(few).documents)
    expected = Obfuscator(mechanism(spec, engine=engine, wordnet=wordnet), n=5, rng=7)
    found = expected.obfuscate(load_collection(few).queries.values())
    assert product.table["variant"].to_pylist() == [v for each in found for v in each.variants]
    assert product.facts["collection"]["name"] == "few"


def published(folder: Path, rows: list[tuple[str, ...]]) -> str:
    file = folder / "theirs.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("id", "text", "obfuscatedText", "epsilon"), *rows])
    return str(file)


def test_published_variants_are_matched_by_id_and_text(runner, tmp_path):
    few = few_queries(tmp_path / "few", 2)
    (one, first), (two, second) = load_collection(few).queries.items()
    rows = [(two, second.upper(), "x y", "1"), (one, f" {first}  ", "a b", "1")]
    rows += [(one, f" {first}  ", f"c d{number}", "1") for number in range(3)]
    rows += [("another", "query", "z", "1")]
    theirs = source(collection=few, spec=None, file=published(tmp_path, rows), epsilon=1.0, n=2)
    product = runner.run(Draw(theirs))
    assert [tuple(row.values()) for row in product.table.to_pylist()] == [
        (one, 1, "a b"),
        (one, 2, "c d0"),
        (two, 1, "x y"),
    ]
    assert product.facts["fewer variants"]["queries"] == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1:], "lacks 1 of the 2"),
        (lambda rows: [*rows, (rows[0][0], "another text", "x", "1")], "1 queries more than once"),
        (lambda rows: [(rows[0][0], "another text", "x", "1"), *rows[1:]], "another text"),
        (lambda rows: [(*row[:3], "2") for row in rows], "lacks 2 of the 2"),
    ],
)
def test_a_published_file_that_does_not_fit_is_refused(runner, tmp_path, change, said):
    few = few_queries(tmp_path / "few", 2)
    rows = [(query, text, "x y", "1") for query, text in load_collection(few).queries.items()]
    file = published(tmp_path, change(rows))
    with pytest.raises(UsageError, match=said) as caught:
        runner.run(Draw(source(collection=few, spec=None, file=file, epsilon=1.0)))
    assert rows[0][1] not in str(caught.value)


# Searching


@pytest.mark.parametrize(
    ("engine", "reranker", "pooling"),
    [
        ("bm25", "light", "union"),
        ("dense:light", "light", "rrf"),
        ("tfidf", "none", "combsum"),
        ("bm25", "bm25", "union"),
    ],
)
def test_a_search_is_what_a_private_search_finds(runner, tmp_path, engine, reranker, pooling):
    few = few_queries(tmp_path / "few", 8)
    of = drawn(runner, source(collection=few))
    searching = replace(SEARCHING, pooling=pooling)
    product = runner.run(Search(of, engine, reranker, searching, UTILITY))
    collection = load_collection(few)
    chosen = choose_engine(engine, collection.documents)
    by = load_reranker(reranker)
    hits = {}
    quality = with_privacy(
        collection,
        PrivateSearch(obfuscator(), chosen, by, pooling=pooling, depth=10),
        lambda answer: hits.update({answer.query: answer.hits}),
    )
    found = values(product, system="private")
    assert found["nDCG@10"] == quality.ndcg.values
    assert found["P@10"] == quality.precision.values
    assert found["pooled recall(rel=1)"] == quality.recall.values
    pools = {query: len(hits[text]) for query, text in collection.queries.items()}
    assert found["pool"] == pools
    assert product.run == {
        query: {hit.doc_id: hit.score for hit in hits[text][:15]}
        for query, text in collection.queries.items()
    }
    deep = with_more_depth(collection, chosen, by, pools)
    found = values(product, system="same depth")
    assert found["nDCG@10"] == deep.ndcg.values
    assert found["pooled recall(rel=1)"] == deep.recall.values
    row = product.table.to_pylist()[0]
    assert list(row.values())[:8] == ["few", engine, reranker, "cmp", 12.0, "independent", 3, 7]


def test_the_baseline_is_the_search_without_privacy(runner, tmp_path):
    few = few_queries(tmp_path / "few", 8)
    product = runner.run(Baseline(few, "bm25", "light", SEARCHING, UTILITY))
    collection = load_collection(few)
    engine = choose_engine("bm25", collection.documents)
    quality = without_privacy(collection, engine, load_reranker("light"), 10)
    found = values(product)
    assert found["nDCG@10"] == quality.ndcg.values
    assert found["pooled recall(rel=1)"] == quality.recall.values
    assert set(found["pool"].values()) == {10.0}
    row = product.table.to_pylist()[0]
    assert list(row.values())[3:9] == ["", None, "", 0, 0, "no privacy"]


def test_recall_counts_the_whole_pool_and_grades_what_is_kept(runner, cmp):
    kept = replace(SEARCHING, kept=1)
    found = values(runner.run(Search(cmp, "bm25", "light", kept, UTILITY)), system="private")
    more = values(runner.run(Search(cmp, "bm25", "light", SEARCHING, UTILITY)), system="private")
    assert found["pooled recall(rel=1)"] == more["pooled recall(rel=1)"]
    assert max(found["P@10"].values()) == 0.1 < max(more["P@10"].values())
    assert found["pooled recall(rel=2)"] != found["pooled recall(rel=1)"]


def test_what_a_process_did_before_changes_nothing(runner, default_space, cmp, tmp_path):
    job = Search(cmp, "bm25", "light", SEARCHING, UTILITY)
    runner.run(Search(cmp, "bm25", "light", replace(SEARCHING, depth=30), UTILITY))
    after = runner.run(job)
    fresh = CellRunner(runner._store.folder).run(job)
    assert after.table.equals(fresh.table)
    assert after.run == fresh.run


def test_threads_change_nothing(runner, few_words, tmp_path):
    few = few_queries(tmp_path / "few", 12)
    cmp = drawn(runner, source(collection=few, texts=few_words))
    jobs = [Leak(cmp, PRIVACY), Search(cmp, "dense:light", "light", SEARCHING, UTILITY)]
    tables = [runner.run(job).table for job in jobs]
    try:
        set_threads(1)
        assert all(
            runner.run(job).table.equals(table) for job, table in zip(jobs, tables, strict=True)
        )
    finally:
        set_threads(None)


def test_scores_that_are_too_many_to_keep_are_the_same(runner, cmp, monkeypatch):
    job = Search(cmp, "bm25", "light", SEARCHING, UTILITY)
    kept = runner.run(job)
    monkeypatch.setattr(search, "MOST_SCORES", 0)
    assert CellRunner(runner._store.folder).run(job).run == kept.run


def test_a_thousand_variants_make_no_large_array(runner):
    of = drawn(runner, source(n=20, epsilon=5.0))
    assert SENT_AT_A_TIME < 65 * 20
    job = Search(of, "dense:light", "light", SEARCHING, UTILITY)
    runner.run(job)
    tracemalloc.start()
    try:
        runner.run(job)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    dimension = load_encoder("light").dimension
    assert peak < 65 * 20 * 718 * dimension * 4 / 10


def test_missing_variants_are_told_without_a_path(runner):
    with pytest.raises(SottovoceError, match="run the experiment again") as caught:
        runner.run(Search(source(seed=99), "bm25", "light", SEARCHING, UTILITY))
    assert str(runner._store.folder) not in str(caught.value)


# Leaking


def released(of: Source, folder: Path, runner: CellRunner) -> list[Released]:
    queries = load_collection(of.collection).queries
    rows = pq.read_table(folder / "variants" / f"{runner.key(Draw(of))}.parquet").to_pylist()
    return [
        Released(query, text, tuple(r["variant"] for r in rows if r["query_id"] == query))
        for query, text in queries.items()
    ]


def test_a_leak_is_what_the_attacks_find(runner, cmp):
    product = runner.run(Leak(cmp, PRIVACY))
    found = values(product, engine="", reranker="", system="private")
    releases = released(cmp, runner._store.folder, runner)
    similar = similarity(releases, measures=["jaccard", "semantic"], encoder="light")
    for measure, expected in similar.values.items():
        assert found[measure] == dict(zip(similar.ids, expected.tolist(), strict=True))
    inferred = infer(
        releases, QueryLog(read_log("demo")), load_encoder("light"), add_originals=True
    )
    for name in ("lazy", "active", "motivated"):
        expected = inferred.risks[name].value
        assert np.mean(list(found[f"{name}[light]"].values())) == pytest.approx(expected)
        assert len(found[f"{name}[light]"]) == 65
    known = mechanism("cmp:epsilon=12", space=runner._cache.space(cmp.texts))
    log = QueryLog(read_log("demo"))
    report = attack(
        releases,
        mechanism=known,
        log=log,
        encoders=[load_encoder("light")],
        add_originals=True,
        counts=[3],
        rng=ATTACKER_SEED,
    )
    for _, recovery in report.recoveries:
        texts = [text for text in recovery.by_text if text.words]
        shares = {text.id: text.right / text.words for text in texts}
        assert found[f"words[{recovery.attack}]"] == shares
        whole = {text.id: float(text.whole) for text in texts}
        assert found[f"query[{recovery.attack}]"] == whole
        content = {t.id: t.content_right / t.content for t in texts if t.content}
        assert found[f"content[{recovery.attack}]"] == content
        assert recovery.words.right > 0
        assert product.facts["attackers"][recovery.attack] == recovery.knows
    for _, inference in report.inferences:
        lazy = {query.id: float(query.rank <= 1) for query in inference.queries}
        assert found[f"lazy[{inference.attack}]"] == lazy
        assert product.facts["attackers"][inference.attack] == inference.knows
    attacks = {"mode", "uniform", "prior", "context", "aligned", "light", *COMPARED}
    assert set(product.facts["attackers"]) == attacks
    assert "attacks that were not tried" not in product.facts
    assert product.facts["log"]["queries"] == len(QueryLog(read_log("demo")))
    assert set(product.facts["encoders"]) == {"light"}


def test_each_attack_tells_what_it_got_of_each_text(toy):
    cmp = mechanism("cmp", space=toy, epsilon=1.0)
    releases = [Released("q", "a b", ("a c",)), Released("r", "c", ("c",)), Released("s", "b", ())]
    ((_, mode),) = attack(releases, mechanism=cmp, attacks=["mode"], counts=[1]).recoveries
    texts = [(text.id, text.right, text.words, text.whole) for text in mode.by_text]
    assert texts == [("q", 1, 2, False), ("r", 1, 1, True)]
    assert (mode.words.right, mode.words.total, mode.whole.right) == (2, 3, 1)


def test_a_release_once_is_attacked_as_one(runner, tmp_path):
    few = few_queries(tmp_path / "few", 1)
    of = drawn(runner, source(epsilon=20.0, release="once", collection=few, n=5))
    attacks = Privacy(similarity=(), attacks=("uniform", "mode"))
    product = runner.run(Leak(of, attacks))
    report = attack(
        released(of, runner._store.folder, runner),
        mechanism=mechanism("cmp:epsilon=20", space=load_space(SPACE)),
        release="once",
        counts=[5],
        attacks=["uniform", "mode"],
        rng=ATTACKER_SEED,
    )
    (uniform,) = [recovery for _, recovery in report.recoveries if recovery.attack == "uniform"]
    found = values(product)
    assert found["query[uniform]"] == {text.id: float(text.whole) for text in uniform.by_text}
    assert uniform.words.right > 0
    kinds = ("words", "content", "query")
    assert set(found) == {f"{kind}[{name}]" for kind in kinds for name in ("uniform", "mode")}


def test_sets_are_attacked_as_sets(runner, tmp_path):
    texts = Texts.of(pool="demo", encoder="light")
    collection = few_queries(tmp_path / "few", 8)
    sets = source("cover:k=5,p=0.9", None, collection=collection, release="once", n=5, texts=texts)
    product = runner.run(Leak(drawn(runner, sets), PRIVACY))
    named = values(product)
    assert {"lazy[law alone]", "lazy[sensitive subjects]", "lazy[classifier]"} <= set(named)
    assert set(named["lazy[law alone]"].values()) <= {0.0, 1.0}
    assert all(share in (0.0, 1.0) for share in named["active[law alone]"].values())
    assert "sensitive subjects" in product.facts[ON_SETS]
    assert "sensitive subjects" not in product.facts["attackers"]
    (chance,) = set(named["chance"].values())
    assert 0 < chance <= 1 / 5


def test_a_mechanism_that_reads_the_collection_is_attacked_too(runner, wordnet, tmp_path):
    few = few_queries(tmp_path / "few", 2)
    spec = "fea:window=6,terms=2,targets=3"
    keyqueries = source(spec, 12.0, collection=few, release="independent")
    found = values(runner.run(Leak(drawn(runner, keyqueries), PRIVACY)))
    assert {"lazy[light]", "active[light]", "motivated[light]"} <= set(found)
    assert set(found["lazy[remade]"].values()) == {1.0}, "whoever has the documents names it"


def test_whole_texts_have_no_words_to_recover(runner, tmp_path):
    few = few_queries(tmp_path / "few", 2)
    texts = Texts.of(pool="demo", encoder="light")
    of = drawn(runner, source("comet-cmp", 5.0, collection=few, texts=texts))
    product = runner.run(Leak(of, PRIVACY))
    found = values(product)
    assert not any(measure.startswith(("words", "content", "query")) for measure in found)
    assert {"lazy[light]", "lazy[aligned]"} <= set(found)
    assert product.facts["attacks that were not tried"]["words"] == WHOLE_TEXTS


def test_of_an_unknown_mechanism_only_the_mode_and_likeness_are_tried(runner, tmp_path):
    few = few_queries(tmp_path / "few", 2)
    rows = [(query, text, text, "1") for query, text in load_collection(few).queries.items()]
    file = published(tmp_path, rows)
    of = drawn(runner, source(collection=few, spec=None, file=file, epsilon=1.0))
    product = runner.run(Leak(of, PRIVACY))
    assert set(values(product)["query[mode]"].values()) == {1.0}
    assert set(product.facts["attackers"]) == {"mode", "light", *COMPARED}
    assert NO_MECHANISM in product.facts["attacks that were not tried"].values()


def test_queries_without_a_variant_are_no_zero(runner, few_words, tmp_path):
    few = few_queries(tmp_path / "few", 2)
    of = source(collection=few, texts=few_words)
    drawn(runner, of)
    file = runner._store.folder / "variants" / f"{runner.key(Draw(of))}.parquet"
    table = pq.read_table(file)
    one = table["query_id"][0].as_py()
    pq.write_table(table.slice(0, 3), file)
    product = CellRunner(runner._store.folder).run(Leak(of, PRIVACY))
    assert all(set(by_query) == {one} for by_query in values(product).values())
    assert product.facts["queries without a variant"]["queries"] == 1
    searched = CellRunner(runner._store.folder).run(Search(of, "bm25", "light", SEARCHING, UTILITY))
    assert sorted(values(searched, system="private")["pool"].values())[0] == 0
    pq.write_table(table.slice(0, 0), file)
    product = CellRunner(runner._store.folder).run(Leak(of, PRIVACY))
    assert product.table.num_rows == 0
    assert product.facts["attacks that were not tried"] == {"cmp": NOTHING_RELEASED}


# Words


def test_deniability_is_that_of_the_measure(runner, default_space):
    asked = Deniability(words=12, draws=50)
    for spec, epsilon in (("cmp", 10.0), ("santext", 2.0)):
        product = runner.run(Deny("ours", spec, epsilon, 3, GLOVE, asked))
        ids = sample_words(default_space, 12)
        chosen = mechanism(spec, space=default_space, epsilon=epsilon)
        expected = deniability(chosen, ids, draws=50, rng=3)
        found = values(product, mechanism="ours", epsilon=epsilon, seed=3)
        names = default_space.words(ids)
        for measure, of in (
            ("N_w", expected.unchanged),
            ("S_w", expected.support),
            ("distinct", expected.distinct),
            ("moved", expected.moved),
        ):
            assert found[measure] == dict(zip(names, of.tolist(), strict=True))


def test_neighbours_and_relatives_of_words(runner, default_space, wordnet):
    product = runner.run(Neighbours(GLOVE, 10, ("cancer", "notaword99")))
    ids = sample_words(default_space, 10)
    expected = neighbour_distances(default_space, ids)
    found = values(product, mechanism="")
    for rank, distances in expected.items():
        by_word = dict(zip(default_space.words(ids), distances.tolist(), strict=True))
        assert found[f"distance to neighbour {rank}"] == by_word
    own = default_space.vectors[default_space.id("cancer")].astype(np.float64)
    relatives = {}
    for kind in ("synonym", "hyponym", "neighbour"):
        near = values(product, mechanism=f"{kind} of cancer")
        assert set(near) == {"distance", "angle"}
        for word, distance in near["distance"].items():
            other = default_space.vectors[default_space.id(word)].astype(np.float64)
            cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
            assert distance == pytest.approx(np.linalg.norm(own - other))
            assert near["angle"][word] == pytest.approx(np.degrees(np.arccos(cosine)))
            assert relatives.setdefault(word, kind) == kind
    assert 30 < len(relatives) <= 100
    assert "cancer" not in relatives
    assert relatives["lymphoma"] == "hyponym"
    assert product.facts["plotted words that the space lacks"] == ["notaword99"]


def test_without_wordnet_plotted_words_have_neighbours_alone(runner, monkeypatch):
    monkeypatch.setattr(words, "installed_wordnet", lambda: None)
    product = runner.run(Neighbours(GLOVE, 5, ("cancer",)))
    kinds = set(product.table["mechanism"].to_pylist())
    assert kinds == {"", "neighbour of cancer"}
    assert product.facts["plotted words"] == words.NO_WORDNET


# Learning


def task_files(folder: Path) -> tuple[str, str]:
    texts, asked = folder / "reviews.jsonl", folder / "asked.jsonl"
    data = reviews()
    rows = [
        {"text": text, "label": label} for text, label in zip(data.texts, data.labels, strict=True)
    ]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [
        {"question": each.question, "answer": answer, "label": str(int(right))}
        for each in questions().asked
        for answer, right in zip(each.answers, each.relevant, strict=True)
    ]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(texts), str(asked)


@pytest.mark.parametrize("which", [0, 1])
def test_lessons_are_those_of_the_downstream_tasks(runner, default_space, tmp_path, which):
    pytest.importorskip("sklearn")
    task = task_files(tmp_path)[which]
    wanted = Downstream((task,), ("tfidf",), limit=100)
    clean = runner.run(Learn(task, "", None, None, 1, GLOVE, wanted))
    hidden = runner.run(Learn(task, "ours", "cmp", 10.0, 1, GLOVE, wanted))
    chosen = mechanism("cmp", space=default_space, epsilon=10)
    expected = evaluate(read_task(task).sample(100), [chosen], seeds=[1])
    found = {}
    for product in (clean, hidden):
        for row in product.table.to_pylist():
            assert row["task"] == Path(task).stem
            key = (row["model"], row["obfuscated"], row["mechanism"], row["measure"])
            found.setdefault(key, []).append(row["value"])
    assert {key: np.mean(each) for key, each in found.items()} == {
        (
            score.setting.model,
            score.hidden,
            "ours" if score.setting.mechanism else "",
            score.setting.measure,
        ): pytest.approx(score.value)
        for score in expected
    }


def test_a_lesson_compares_obfuscated_texts_with_their_originals(runner, default_space, tmp_path):
    pytest.importorskip("sklearn")
    task = task_files(tmp_path)[0]
    asked = Downstream(
        (task,),
        ("tfidf",),
        limit=50,
        test=task,
        regimes=("only test",),
        similarity=("jaccard", "semantic"),
        similarity_encoder="light",
    )
    means = {}
    for epsilon in (0.01, 1000.0):
        table = runner.run(Learn(task, "ours", "cmp", epsilon, 1, GLOVE, asked)).table
        rows = [row for row in table.to_pylist() if row["model"] == "similarity"]
        assert {row["obfuscated"] for row in rows} == {"only test"}
        assert {row["item"] for row in rows} == set(range(50, 50 + len(read_task(task))))
        for measure in ("jaccard", "semantic"):
            values = [row["value"] for row in rows if row["measure"] == measure]
            means[measure, epsilon] = np.mean(values)
    assert means["jaccard", 0.01] < 0.1 < 0.9 < means["jaccard", 1000.0]
    assert means["semantic", 0.01] < 0.7 < 0.95 < means["semantic", 1000.0]
    keys = {
        runner.key(Learn(task, "ours", "cmp", 1.0, 1, GLOVE, each))
        for each in (asked, replace(asked, test=None), replace(asked, similarity=("jaccard",)))
    }
    assert len(keys) == 3


# Keys


def test_keys_do_not_depend_on_where_files_lie(default_space, tmp_path):
    keys = []
    for place in ("here", "there/deeper"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        few = few_queries(folder / "few", 2, documents=20)
        log = folder / f"log-{place[0]}.txt"
        shutil.copy(DEMO / "log.txt", log)
        rows = [(query, text, "x", "1") for query, text in load_collection(few).queries.items()]
        task, _ = task_files(folder)
        of = source(collection=few)
        theirs = source(collection=few, spec=None, file=published(folder, rows))
        privacy = replace(PRIVACY, log=str(log))
        pool = Texts.of(pool=str(log), encoder="light")
        jobs = [
            Draw(of),
            Draw(theirs),
            Search(of, "bm25", "light", SEARCHING, UTILITY),
            Baseline(few, "dense:light", "none", SEARCHING, UTILITY),
            Leak(of, privacy),
            Draw(source("comet-cmp", 5.0, collection=few, texts=pool)),
            Learn(task, "", None, None, 1, GLOVE, Downstream((task,))),
        ]
        runner = CellRunner(folder)
        keys.append([runner.key(job) for job in jobs])
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(jobs)
    assert all(len(key) == 64 and int(key, 16) for key in keys[0])


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels.txt"])
def test_keys_change_with_the_collection(default_space, tmp_path, file):
    few = few_queries(tmp_path / "few", 3, documents=20)
    jobs = [
        Draw(source(collection=few)),
        Search(source(collection=few), "bm25", "none", SEARCHING, UTILITY),
        Baseline(few, "bm25", "none", SEARCHING, UTILITY),
        Leak(source(collection=few), PRIVACY),
    ]
    before = [CellRunner(tmp_path).key(job) for job in jobs]
    path = Path(few) / file
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    runner = CellRunner(tmp_path)
    assert not {runner.key(job) for job in jobs} & set(before)


def test_keys_change_with_files_and_settings(default_space, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("one query\n")
    task, _ = task_files(tmp_path)
    rows = [(query, text, "x", "1") for query, text in load_collection("demo").queries.items()]
    file = published(tmp_path, rows)
    leak = Leak(source(), replace(PRIVACY, log=str(log)))
    learn = Learn(task, "", None, None, 1, GLOVE, Downstream((task,)))
    theirs = Draw(source(spec=None, file=file))
    before = [CellRunner(tmp_path).key(job) for job in (leak, learn, theirs)]
    log.write_text("one query\nanother\n")
    Path(task).write_text(Path(task).read_text() * 2)
    published(tmp_path, [(*row[:2], "y", "1") for row in rows])
    after = [CellRunner(tmp_path).key(job) for job in (leak, learn, theirs)]
    assert not set(before) & set(after)

    runner = CellRunner(tmp_path)
    search = Search(source(), "bm25", "light", SEARCHING, UTILITY)
    others = [
        search,
        replace(search, engine="tfidf"),
        replace(search, reranker="none"),
        replace(search, searching=Searching()),
        replace(search, utility=Utility()),
        *(
            replace(search, source=replace(source(), **change))
            for change in (
                {"n": 4},
                {"seed": 8},
                {"epsilon": 5.0},
                {"release": "once"},
                {"mechanism": "another name"},
                {"spec": "vickrey-cmp:t=0.5"},
                {"texts": Texts.of(space=SPACE, unknown="drop")},
                {"texts": Texts.of(space=SPACE, output_vocabulary="clean")},
            )
        ),
    ]
    assert len({runner.key(job) for job in others}) == len(others)
    assert runner.key(Draw(source(epsilon=12))) == runner.key(Draw(source(epsilon=12.0)))
    slashes = [
        replace(search, source=source(mechanism=name)) for name in ("cmp 1/2", "cmp 2/2", "2")
    ]
    assert len({runner.key(job) for job in slashes}) == 3
    unused = replace(search, source=source(texts=Texts.of(space=SPACE, pool=str(log))))
    assert runner.key(unused) == runner.key(search)


def test_tasks_are_obfuscated_as_the_file_says(default_space, tmp_path):
    task, _ = task_files(tmp_path)
    job = Learn(task, "ours", "cmp", 10.0, 1, GLOVE, Downstream((task,)))
    runner, seen = CellRunner(tmp_path), []

    def pipeline_of(*_, pipeline):
        seen.append(pipeline)
        return []

    runner._lessons._lesson = lambda *_: SimpleNamespace(obfuscated=pipeline_of)
    runner.run(job)
    runner.run(replace(job, texts=Texts.of(space=SPACE, unknown="drop", protect="noun")))
    assert [(each.unknown, each.protect) for each in seen] == [("encode", "all"), ("drop", "noun")]
