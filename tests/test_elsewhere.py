"""A server on this machine may pass on what it is asked: then it is treated like any other."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, field

import pytest
from command_line import as_text, run_command
from servers import Web, reply, web
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.previews import Previews
from sottovoce.app.schemas import PreviewBody, SearchBody
from sottovoce.app.searching import draw_preview, run_search
from sottovoce.app.settings import Settings
from sottovoce.cli import app
from sottovoce.engines import choose_engine, choose_vector_store
from sottovoce.engines.json_http import JsonHttp
from sottovoce.engines.opensearch import OpenSearch
from sottovoce.engines.opensearch_knn import OpenSearchKNN
from sottovoce.engines.qdrant import Qdrant
from sottovoce.errors import PrivacyWarning, UsageError
from sottovoce.ledger import Ledger, OtherCompanyError
from sottovoce.obfuscation.chorus import Chorus
from sottovoce.pools import load_pool
from sottovoce.search import PrivateSearch, load_reranker

QUERY = "treatment for skin cancer"
HERE, AWAY = "http://localhost:9200", "https://search.example.org"


@dataclass
class Forwarder:
    """What listens on this machine: where it is, what it was asked, and when."""

    server: Web
    times: list[float] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return len(self.times)

    def file(self, folder, **more_keys) -> str:
        """The engine by a TOML file, as it is named on the command line."""
        keys = {"name": "box", "url": f"{self.server.url}/?q={{query}}", "results": "", "id": "id"}
        lines = [f"{key} = {toml(value)}\n" for key, value in (keys | more_keys).items()]
        path = folder / "box.toml"
        path.write_text("".join(lines))
        return f"http:{path}"


def toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'


@pytest.fixture
def forwarder():
    times: list[float] = []

    def answer(request):
        times.append(time.monotonic())
        return reply([])

    with web(answer) as server:
        yield Forwarder(server, times)


@pytest.fixture(scope="module")
def pool():
    return load_pool("demo", "light")


def covered(pool, spec, engine, ledger=None, **how):
    obfuscator = Obfuscator(mechanism(spec, pool=pool), **how)
    return PrivateSearch(obfuscator, engine, load_reranker("none"), ledger)


# The whole way, over a real socket


def test_what_passes_queries_on_is_asked_slowly_and_little(forwarder, pool, tmp_path):
    engine = choose_engine(forwarder.file(tmp_path, elsewhere=True))
    assert (engine.remote, engine.pause, engine.most_queries) == (True, 1.0, 20)
    ledger = Ledger.open(tmp_path / "ledger")
    covered(pool, "cover:k=3", engine, ledger).search(QUERY)
    first, second, third = forwarder.times
    assert min(second - first, third - second) > 0.95
    with pytest.raises(UsageError, match="takes 20 queries for a search, these are 21"):
        covered(pool, "cover:k=21", engine, ledger).search("debt advice")
    assert forwarder.asked == 3


def test_what_passes_queries_on_gets_a_query_in_one_company_alone(forwarder, pool, tmp_path):
    engine = choose_engine(forwarder.file(tmp_path, elsewhere=True, pause=0))
    with pytest.raises(UsageError, match="needs the ledger"):
        covered(pool, "cover:k=8", engine)
    assert forwarder.asked == 0
    ledger = Ledger.open(tmp_path / "ledger")
    covered(pool, "cover:k=8", engine, ledger).search(QUERY)
    assert forwarder.asked == 8
    for other in ("cover:k=9", "cover:k=8,p=0.8"):
        with pytest.raises(OtherCompanyError, match="record 1 of the ledger"):
            covered(pool, other, engine, ledger).search(QUERY)
    assert forwarder.asked == 8


@pytest.mark.usefixtures("home")
def test_what_the_app_only_showed_has_not_left(forwarder, tmp_path):
    engine = forwarder.file(tmp_path, elsewhere=True, pause=0)
    parts = LoadedParts(Settings(engine=engine, reranker="none", token="not empty"))
    previews = Previews()
    shown = draw_preview(parts, previews, PreviewBody(query=QUERY, one_in=8))
    assert forwarder.asked == 0
    sent = run_search(parts, previews, SearchBody(query=QUERY, one_in=5), lambda event: None)
    assert forwarder.asked == len(sent["sent"]) == 5
    later = SearchBody(query=QUERY, one_in=8, preview=shown["preview"])
    with pytest.raises(OtherCompanyError, match="record 2 of the ledger"):
        run_search(parts, previews, later, lambda event: None)
    assert forwarder.asked == 5


class Stopped(Exception):
    """Somebody presses Stop."""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("previewed", [False, True])
def test_what_was_stopped_in_the_app_before_it_left_may_leave_in_another_way(
    forwarder, tmp_path, previewed
):
    engine = forwarder.file(tmp_path, elsewhere=True, pause=0)
    parts = LoadedParts(Settings(engine=engine, reranker="none", token="not empty"))
    previews, query = Previews(), f"something asked, {previewed}"
    body = SearchBody(query=query, one_in=8)
    if previewed:
        shown = draw_preview(parts, previews, PreviewBody(query=query, one_in=8))
        body = SearchBody(query=query, one_in=8, preview=shown["preview"])

    def stop(event):
        if event["step"] == "sending":
            raise Stopped

    with pytest.raises(Stopped):
        run_search(parts, previews, body, stop)
    assert forwarder.asked == 0
    run_search(parts, previews, SearchBody(query=query, one_in=5), lambda event: None)
    assert forwarder.asked == 5


def test_whoever_ends_the_command_when_a_subject_is_worn_out_has_sent_nothing(
    forwarder, home, tmp_path, monkeypatch
):
    """And may ask in another way."""

    def end(search, company):
        raise KeyboardInterrupt

    query, engine = "worn out before it left", forwarder.file(tmp_path, elsewhere=True, pause=0)
    options = ["--pool", "demo", "--encoder", "light", "--rerank", "none", "--engine", engine]
    with monkeypatch.context() as patch:
        patch.setattr("sottovoce.search.worn_out", end)
        ended = CliRunner().invoke(app, ["search", query, "--cover", "5", *options])
    assert ended.exit_code != 0
    assert [record.mechanism[:9] for record in Ledger.open().entries(1)] == ["cover:k=5"]
    assert forwarder.asked == 0
    done = CliRunner().invoke(app, ["search", query, "--cover", "8", *options])
    assert done.exit_code == 0, done.output
    assert forwarder.asked == 8


def test_the_app_and_the_command_ask_elsewhere_in_one_company(forwarder, home, tmp_path):
    """They read the same file, so that neither refuses what the other has sent."""
    engine, log = forwarder.file(tmp_path, elsewhere=True, pause=0), tmp_path / "log.txt"
    log.write_text("\n".join(f"Public Query {number}" for number in range(60)), encoding="utf-8")
    query = "something asked in both"
    parts = LoadedParts(Settings(engine=engine, reranker="none", token="not empty", log=str(log)))
    run_search(parts, Previews(), SearchBody(query=query), lambda event: None)
    assert forwarder.asked == 20
    cover = ("--cover", "20", "--pool", log, "--engine", engine, "--rerank", "none")
    done = as_text(run_command("search", query, *cover, "--json", home=home))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recalled"]
    assert forwarder.asked == 40


def test_a_server_that_keeps_queries_to_itself_gets_them_as_they_come(forwarder, pool, tmp_path):
    engine = choose_engine(forwarder.file(tmp_path))
    assert (engine.remote, engine.pause, engine.most_queries) == (False, 0.0, None)
    started = time.monotonic()
    for spec in ("cover:k=30", "cover:k=20"):
        covered(pool, spec, engine).search(QUERY)
    covered(pool, "cover:k=10", engine, rng=1).search(QUERY)
    assert forwarder.asked == 60
    assert time.monotonic() - started < 30  # With pauses it would take a minute.


def test_no_seed_goes_with_company_to_an_engine_elsewhere(forwarder, pool, toy, tmp_path):
    """Each seed would draw another set with the query in it."""
    ledger = Ledger.open(tmp_path / "ledger")
    engine = choose_engine(forwarder.file(tmp_path, elsewhere=True, pause=0))
    with pytest.raises(UsageError, match="takes no seed") as refused:
        covered(pool, "cover:k=8", engine, ledger, rng=1)
    assert "leave the seed out" in str(refused.value)
    chorus = Chorus(mechanism("cmp", space=toy, epsilon=5), n=2, pool=pool, k=3, rng=1)
    with pytest.raises(UsageError, match="chorus takes no seed"):
        PrivateSearch(chorus, engine, load_reranker("none"), ledger)
    assert forwarder.asked == 0
    assert not ledger.entries()


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--no-ledger",), "needs the ledger"), (("--seed", "1"), "takes no seed")],
)
def test_the_command_refuses_it_too(forwarder, home, tmp_path, options, message):
    spec = forwarder.file(tmp_path, elsewhere=True)
    cover = ("--cover", "5", "--pool", "demo", "--encoder", "light", "--rerank", "none")
    done = as_text(run_command("search", QUERY, *cover, "--engine", spec, *options, home=home))
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
    assert forwarder.asked == 0


# What decides it, for every engine over a socket


def described(url: str, **more_keys: object) -> JsonHttp:
    return JsonHttp({"name": "a", "url": url, "results": "results", "id": "url", **more_keys})


def over_http(url: str, elsewhere: bool | None) -> JsonHttp:
    more_keys = {} if elsewhere is None else {"elsewhere": elsewhere}
    return described(f"{url}/?q={{query}}", **more_keys)


def over_opensearch(url: str, elsewhere: bool | None) -> OpenSearch:
    return OpenSearch(url, "articles", elsewhere=elsewhere)


def over_knn(url: str, elsewhere: bool | None) -> OpenSearchKNN:
    return OpenSearchKNN(url, "articles", "light", elsewhere=elsewhere)


def over_qdrant(url: str, elsewhere: bool | None) -> Qdrant:
    return Qdrant("articles", "light", url=url, elsewhere=elsewhere)


def over_postgres(url: str, elsewhere: bool | None):
    pytest.importorskip("psycopg")
    from sottovoce.engines.postgres import Postgres

    return Postgres(f"postgresql://{url.partition('//')[2]}/library", "a", elsewhere=elsewhere)


def over_pgvector(url: str, elsewhere: bool | None):
    pytest.importorskip("psycopg")
    from sottovoce.engines.pgvector import PgVector

    dsn = f"postgresql://{url.partition('//')[2]}/library"
    return PgVector(dsn, "articles", "light", elsewhere=elsewhere)


@pytest.mark.parametrize(
    "ask", [over_http, over_opensearch, over_knn, over_qdrant, over_postgres, over_pgvector]
)
def test_every_engine_over_a_socket_says_where_queries_go(ask):
    assert [ask(HERE, value).remote for value in (None, False, True)] == [False, False, True]
    assert [ask(AWAY, value).remote for value in (None, True)] == [True, True]
    with pytest.raises(UsageError, match="this address is another's: leave it out"):
        ask(AWAY, elsewhere=False)


@pytest.mark.parametrize("ask", [over_opensearch, over_postgres])
def test_and_is_asked_accordingly(ask):
    assert (ask(HERE, None).pause, ask(HERE, None).most_queries) == (0.0, None)
    assert (ask(HERE, True).pause, ask(HERE, True).most_queries) == (1.0, 20)


def test_searxng_passes_queries_on_wherever_it_is():
    url = "http://127.0.0.1:8888/search?q={query}&format=json"
    assert (described(url).remote, described(url).pause) == (True, 1.0)
    with pytest.warns(PrivacyWarning, match="asked as SearXNG is"):
        assert not described(url, elsewhere=False).remote
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert described(url, elsewhere=True).remote
        assert not described("http://127.0.0.1:8888/search?q={query}").remote


def test_it_is_said_before_an_engine_that_no_file_describes():
    assert choose_engine(f"elsewhere:opensearch:{HERE}/articles").remote
    assert not choose_engine(f"opensearch:{HERE}/articles").remote
    for spec in ("elsewhere:bm25", "elsewhere:http:box.toml", "elsewhere:"):
        with pytest.raises(UsageError, match="'elsewhere:' stands before opensearch"):
            choose_engine(spec, [])


@pytest.mark.parametrize("columns", ["", ":slug,headline,body"])
def test_before_postgres_too(columns):
    pytest.importorskip("psycopg")
    spec = f"postgres:postgresql://localhost/library#articles{columns}"
    assert choose_engine(f"elsewhere:{spec}").remote
    assert not choose_engine(spec).remote


def test_files_of_stores_say_it(tmp_path):
    file = tmp_path / "store.toml"
    common = f'collection = "a"\nencoder = "light"\nurl = "{HERE}"\n'
    file.write_text(f"{common}elsewhere = true\n")
    assert choose_vector_store(f"qdrant:{file}").remote
    file.write_text(f'{common}elsewhere = "yes"\n')
    with pytest.raises(UsageError, match="'elsewhere' in the store's file is true or false"):
        choose_vector_store(f"qdrant:{file}")
    with pytest.raises(UsageError, match="read here: leave 'elsewhere' out"):
        Qdrant("a", "light", folder="somewhere", elsewhere=True)
    with pytest.raises(UsageError, match="'elsewhere' in the engine's file is true or false"):
        described(f"{HERE}/?q={{query}}", elsewhere="yes")
