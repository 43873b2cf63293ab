"""PyTerrier: pipelines whose retriever never sees a query, and one table of quality and risk."""

from __future__ import annotations

import pickle
import socket
from itertools import pairwise

import pytest
from cover_cases import in_company
from integration_data import SECRET, Hostile, cmp, collection, engine, obfuscator

from sottovoce import Obfuscator, PrivateSearch
from sottovoce.collections import load_collection, read_documents
from sottovoce.engines import BM25
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError
from sottovoce.ledger import BudgetError, Ledger, OtherCompanyError
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.search import load_reranker

pt = pytest.importorskip("pyterrier")
pd = pytest.importorskip("pandas")

from sottovoce.integrations.pyterrier import (  # noqa: E402
    Obfuscate,
    PoolVariants,
    Rerank,
    Retrieve,
    private_experiment,
    qrels,
    topics,
)

RERANKER = load_reranker("bm25")
# PyTerrier itself still does what pandas will not do any more.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


class Stranger(pt.Transformer):
    """A retriever that keeps everything it is given."""

    def __init__(self, fails: bool = False) -> None:
        self.retrieve, self.fails = Retrieve(engine(), 5), fails
        self.frames: list[pd.DataFrame] = []

    def transform(self, inp):
        self.frames.append(inp.copy())
        if self.fails:
            raise ConnectionError("no answer")
        return self.retrieve(inp)


def pipeline(obfuscate: Obfuscate, retriever=None) -> pt.Transformer:
    retriever = retriever or Retrieve(engine(), 5)
    return obfuscate >> retriever >> PoolVariants(obfuscate) >> Rerank(RERANKER)


@pytest.fixture
def asked() -> pd.DataFrame:
    """Topics that say the query in every way that topics do."""
    frame = topics(collection())
    text = frame["query"]
    frame = frame.assign(query_0=text, narrative=text, query_toks=[{SECRET: 1.0}] * len(frame))
    frame.attrs["query"] = SECRET
    frame.index = pd.Index(text)
    return frame


# What a retriever gets


def test_a_retriever_sees_variants_under_random_ids_and_nothing_else(asked):
    stranger = Stranger()
    obfuscate = Obfuscate(obfuscator(4))
    answers = pipeline(obfuscate, stranger)(asked)
    (seen,) = stranger.frames
    assert list(seen.columns) == ["qid", "query"]
    assert seen.attrs == {}
    assert list(seen.index) == list(range(len(seen)))
    assert seen["qid"].is_unique
    everything = seen.to_csv() + repr(seen)
    assert SECRET not in everything
    assert not set(asked["qid"]) & set(seen["qid"])
    assert set(answers["qid"]) == set(asked["qid"])
    assert set(answers["query_0"]) == set(asked["query"])
    assert "query" not in answers.columns
    assert not answers.duplicated(["qid", "docno"]).any()


def test_variants_of_several_queries_are_mixed(asked):
    obfuscate = Obfuscate(obfuscator(20))
    sent = obfuscate(asked)
    qids = [obfuscate.kept.of(name)[0].qid for name in sent["qid"]]
    changes = sum(before != after for before, after in pairwise(qids))
    assert changes > 2 * len(asked), "the variants of a query stand next to each other"


def test_a_pipeline_finds_what_a_private_search_finds(asked):
    answers = pipeline(Obfuscate(obfuscator(4, rng=1), remote=False))(asked)
    search = PrivateSearch(obfuscator(4, rng=1), engine(), RERANKER, depth=5)
    results = search.obfuscator.obfuscate(asked["query"])
    for qid, result in zip(asked["qid"], results, strict=True):
        expected = search.answer(result, None).hits
        rows = answers[answers["qid"] == qid].sort_values("rank")
        assert list(rows["score"]) == [hit.score for hit in expected]
        assert set(rows["docno"]) == {hit.doc_id for hit in expected}
        assert list(rows["rank"]) == list(range(len(expected)))


@pytest.mark.parametrize("method", ["union", "rrf", "combsum"])
def test_pooling_keeps_what_is_known_of_documents(asked, method):
    obfuscate = Obfuscate(obfuscator(3))
    pooled = (obfuscate >> Retrieve(engine(), 5) >> PoolVariants(obfuscate, method))(asked)
    assert list(pooled.columns) == ["qid", "query_0", "docno", "score", "rank", "title", "text"]
    for row in pooled.itertuples():
        assert row.title == f"title {row.docno[1:]}"
        assert row.text == engine().text(row.docno)
    assert pooled.groupby("qid")["score"].is_monotonic_decreasing.all()


def test_the_true_query_becomes_the_query_where_that_is_asked_for(asked):
    obfuscate = Obfuscate(obfuscator(2))
    pooled = obfuscate >> Retrieve(engine(), 5) >> PoolVariants(obfuscate)
    renamed = pooled >> pt.apply.rename({"query_0": "query"})
    assert set(renamed(asked)["query"]) == set(asked["query"])


def test_no_row_no_answer_and_blank_queries_are_no_trouble():
    private = pipeline(Obfuscate(obfuscator(2)))
    assert len(private(pd.DataFrame(columns=["qid", "query"]))) == 0
    assert len(private.search("   ")) == 0


# Failures


def test_no_error_tells_the_query(asked):
    stranger = Stranger()
    private = pipeline(Obfuscate(Obfuscator(Hostile())), stranger)
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        private(asked)
    assert stranger.frames == []
    assert SECRET not in str(caught.value)

    class Broken:
        name = "broken"

        def scores(self, query, texts):
            raise ValueError(query)

    obfuscate = Obfuscate(obfuscator(2))
    ranked = obfuscate >> Retrieve(engine(), 5) >> PoolVariants(obfuscate) >> Rerank(Broken())
    with pytest.raises(SottovoceError, match="ValueError") as caught:
        ranked(asked)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None

    with pytest.raises(ConnectionError):
        pipeline(obfuscate, stranger := Stranger(fails=True))(asked)
    assert SECRET not in stranger.frames[0].to_csv()


def test_what_a_budget_refuses_is_not_sent(asked, tmp_path):
    stranger, ledger = Stranger(), Ledger.open(tmp_path)
    private = pipeline(Obfuscate(obfuscator(2, release="once"), ledger=ledger), stranger)
    private(asked[:1])
    assert [record.spent for record in ledger.entries()] == [2.0]
    ledger.set_budget(None, 2.0)
    private(asked[:1])  # Its words were said before: that costs nothing.
    with pytest.raises(BudgetError):
        private(asked[1:])
    assert len(stranger.frames) == 2


def test_what_a_retriever_elsewhere_got_is_refused_company(asked, tmp_path):
    ledger, (query,) = Ledger.open(tmp_path), asked["query"][:1]
    pipeline(Obfuscate(obfuscator(2), ledger=ledger, remote=False))(asked[:1])
    ledger.charge(in_company(query), leaving=False)
    pipeline(Obfuscate(obfuscator(2), ledger=ledger))(asked[:1])
    with pytest.raises(OtherCompanyError):
        ledger.charge(in_company(query), leaving=False)


def test_answers_go_to_no_other_queries(asked):
    one, another = Obfuscate(obfuscator(2)), Obfuscate(obfuscator(2))
    with pytest.raises(SottovoceError, match="belong to no query"):
        (one >> Retrieve(engine(), 5) >> PoolVariants(another))(asked)
    answers = (one >> Retrieve(engine(), 5))(asked)
    one.forget()
    with pytest.raises(SottovoceError, match="belong to no query"):
        PoolVariants(one)(answers)
    small = Obfuscate(obfuscator(2), remember=2)
    with pytest.raises(SottovoceError, match="belong to no query"):
        pipeline(small)(asked)
    assert len(pipeline(small)(asked[:2]))


def test_copies_and_descriptions_hold_no_query(asked):
    obfuscate = Obfuscate(obfuscator(2))
    private = pipeline(obfuscate)
    private(asked)
    assert SECRET.encode() not in pickle.dumps(private)
    assert SECRET not in repr(private) + repr(obfuscate.kept.all()) + pt.schematic.draw(private)
    again = pickle.loads(pickle.dumps(private))
    assert len(again(asked))


def test_wrong_frames_are_refused(asked):
    obfuscate = Obfuscate(obfuscator(2))
    with pytest.raises(UsageError, match="twice"):
        obfuscate(pd.concat([asked, asked]))
    with pytest.raises(pt.validate.InputValidationError):
        obfuscate(asked.assign(docno="d1"))
    with pytest.raises(UsageError, match="union"):
        PoolVariants(obfuscate, "best")
    with pytest.warns(PrivacyWarning, match="seeded"):
        Obfuscate(obfuscator(2, rng=1))


# PyTerrier's own test of a transformer


@pytest.fixture(autouse=True, scope="module")
def offline():
    """Nobody calls home: PyTerrier looks classes up in the network unless told where."""

    def refuse(*arguments, **options):
        raise AssertionError("a connection was opened")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")
        patch.setattr(socket.socket, "connect", refuse)
        yield


class TestObfuscate(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return Obfuscate(obfuscator(2))


class TestPoolVariants(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return PoolVariants(Obfuscate(obfuscator(2)))


class TestRerank(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return Rerank(RERANKER)


class TestRetrieve(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return Retrieve(engine())


class TestPipeline(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return pipeline(Obfuscate(obfuscator(2)))


# Experiments


def test_one_table_tells_quality_and_risk():
    plain = Retrieve(engine(), 5) >> Rerank(RERANKER)
    obfuscate = Obfuscate(Obfuscator(cmp(), n=3, release="once", rng=1), remote=False)
    systems = {"plain": plain, "private": pipeline(obfuscate)}
    frames = topics(collection()), qrels(collection())
    log = ["wordaa wordbb", "wordcc wordde wordef"]
    table = private_experiment(systems, *frames, ["ndcg_cut_5"], log=log, rng=1)
    assert list(table["name"]) == ["plain", "private"]
    assert table["spent"].tolist() == [float("inf"), 2.0]
    assert table["risk"][0] == 1
    releases = [Released("", query.release.result.text, query.release.result.variants)
                for query in obfuscate.kept.all()]  # fmt: skip
    assert len(releases) == 5
    report = attack(
        releases, mechanism=cmp(), release="once", pipeline=obfuscate.obfuscator.pipeline,
        log=QueryLog(log), add_originals=True, counts=(3,), rng=1,
    )  # fmt: skip
    expected = max((report.words, report.queries), key=lambda headline: headline.share)
    row = table.iloc[1]
    assert (row["risk"], row["risk_of"]) == (expected.share, expected.what)
    assert (row["attack"], row["attacker_knows"]) == (expected.attack, expected.knows)
    assert row["risk_low"] <= row["risk"] <= row["risk_high"]
    own = pt.Experiment([systems["private"]], *frames, ["ndcg_cut_5"])
    assert row["ndcg_cut_5"] == own["ndcg_cut_5"][0], "the seed decides the answers"


def test_experiments_that_cannot_be_told_apart_are_refused():
    frames = topics(collection()), qrels(collection()), ["ndcg_cut_5"]
    obfuscate = Obfuscate(obfuscator(2))
    with pytest.raises(UsageError, match="of its own"):
        private_experiment({"a": pipeline(obfuscate), "b": pipeline(obfuscate)}, *frames)
    for beside in (Retrieve(engine(), 5) + pipeline(obfuscate), Stranger() >> obfuscate):
        with pytest.raises(UsageError, match="begins with"):
            private_experiment({"a": beside}, *frames)
    with pytest.raises(UsageError, match="table of means"):
        private_experiment({"a": pipeline(obfuscate)}, *frames, perquery=True)


# ir_datasets


@pytest.fixture
def registered(tmp_path):
    """A collection that ir_datasets knows by name, from files on this machine."""
    ir_datasets = pytest.importorskip("ir_datasets")
    small = collection()
    (tmp_path / "docs.tsv").write_text("".join(f"{d.doc_id}\t{d.text}\n" for d in small.documents))
    (tmp_path / "queries.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in small.queries.items()))
    (tmp_path / "qrels").write_text(
        "".join(
            f"{q} 0 {d} {g}\n" for q, grades in small.judgments.items() for d, g in grades.items()
        )
    )
    name = f"sottovoce-{tmp_path.name}"
    paths = (str(tmp_path / file) for file in ("docs.tsv", "queries.tsv", "qrels"))
    ir_datasets.registry.register(name, ir_datasets.create_dataset(*paths))
    return name


def test_documents_of_ir_datasets_come_one_at_a_time(registered, monkeypatch):
    from ir_datasets.formats import TsvDocs

    read, whole = [], TsvDocs.docs_iter

    def counted(self):
        for document in whole(self):
            read.append(document.doc_id)
            yield document

    monkeypatch.setattr(TsvDocs, "docs_iter", counted)
    documents = read_documents(f"ir_datasets:{registered}")
    assert read == []
    assert next(documents).doc_id == "d0"
    assert read == ["d0"]
    assert [document.doc_id for document in documents] == [f"d{n}" for n in range(1, 30)]


def test_a_title_is_not_part_of_the_text_as_well(registered, monkeypatch):
    from ir_datasets.datasets.beir import BeirTitleDoc
    from ir_datasets.formats import TsvDocs

    documents = [BeirTitleDoc("1", "salmon swim", "Fish"), BeirTitleDoc("2", "no title", "")]
    monkeypatch.setattr(TsvDocs, "docs_iter", lambda self: iter(documents))
    read = [(doc.title, doc.text) for doc in read_documents(f"ir_datasets:{registered}")]
    assert read == [("Fish", "salmon swim"), ("", "no title")]


def test_a_data_set_of_pyterrier_and_ours_are_the_same(registered):
    ours = load_collection(f"ir_datasets:{registered}")
    dataset = pt.get_dataset(f"irds:{registered}")
    assert dict(ours.queries) == collection().queries
    assert ours.judgments == collection().judgments
    theirs = dataset.get_topics(), dataset.get_qrels()
    for frame, same in zip(theirs, (topics(ours), qrels(ours)), strict=True):
        columns = list(same.columns)
        assert set(frame[columns].itertuples(False, None)) == set(same.itertuples(False, None))
    index = BM25(read_documents(f"ir_datasets:{registered}"))
    obfuscate = Obfuscate(obfuscator(2, rng=1), remote=False)
    private = (
        obfuscate >> Retrieve(index, 5) >> PoolVariants(obfuscate)
        >> dataset.text_loader("text") >> Rerank(RERANKER)
    )  # fmt: skip
    (score,) = pt.Experiment([private], *theirs, ["ndcg_cut_5"])["ndcg_cut_5"]
    assert 0 < score <= 1
