"""What engines send and how they read answers; every query stays one value of the request."""

from __future__ import annotations

import base64
import json
import re
import time
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import servers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servers import Request, reply, web

from sottovoce.engines import BM25, TfIdf, choose_engine
from sottovoce.engines.base import EngineError, Hit
from sottovoce.engines.dense import Dense
from sottovoce.engines.json_http import JsonHttp
from sottovoce.engines.opensearch import OpenSearch
from sottovoce.engines.remote import Address, Fields, is_loopback, read_hits
from sottovoce.errors import PrivacyWarning, UsageError
from sottovoce.text.words import words

library, bm25 = servers.library, servers.bm25
DOCS = Path(__file__).parents[1] / "docs" / "engines.md"
NASTY = [
    *('" or 1=1 --', "'; DROP TABLE articles; --", "&n=999", "q=&q=", "#", "?", "../..", "%00"),
    *("{depth}", "{query}", "${HOME}", '"}, {"match_all": {}', "\n{}\n", "\r\nHost: evil\r\n"),
    *("!g fish", "-fish", "fish OR tank", "<b>", "\0", "\ud800", "\U0001f40b", "+", " ", "\\", "/"),
]
queries = st.lists(
    st.sampled_from([*NASTY, "fish", "tank", "river"])
    | st.text(st.characters(exclude_categories=()), max_size=8),
    max_size=5,
).map("".join)
many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def carried(query: str) -> str:
    """The query with a sign in place of what cannot be sent."""
    return "".join(
        "\ufffd" if sign == "\0" or 0xD800 <= ord(sign) < 0xE000 else sign for sign in query
    )


def described(url: str, **said) -> dict[str, object]:
    return {"name": "test", "url": url, "results": "results", "id": "id", **said}


# Any query is one value


@pytest.fixture(scope="module")
def listener():
    with web(lambda request: reply({"results": []})) as server:
        yield server


@many
@given(queries)
def test_any_query_is_one_parameter_of_the_url(listener, query):
    listener.requests.clear()
    engine = JsonHttp(described(listener.url + "/find?n={depth}&q={query}&kind=text"))
    engine.search([query, "fish"], 7)
    *asked, plain = listener.requests
    assert len(asked) == bool(carried(query).strip())
    for request in asked:
        assert (request.method, request.body) == ("GET", b"")
        path, _, parameters = request.target.partition("?")
        assert path == "/find"
        assert parse_qsl(parameters, keep_blank_values=True, strict_parsing=True) == [
            ("n", "7"),
            ("q", carried(query)),
            ("kind", "text"),
        ]
        assert request.headers == plain.headers


@many
@given(queries)
def test_any_query_is_one_string_of_the_body(listener, query):
    listener.requests.clear()
    body = {"find": [{"text": "{query}", "in": "{title}"}], "limit": "{depth}", "note": "a {depth}"}
    engine = JsonHttp(described(listener.url + "/find?n={depth}", body=body))
    engine.search([query, "fish"], 7)
    *asked, plain = listener.requests
    assert len(asked) == bool(carried(query).strip())
    for request in asked:
        assert (request.method, request.target) == ("POST", "/find?n=7")
        assert json.loads(request.body) == {
            "find": [{"text": carried(query), "in": "{title}"}],
            "limit": 7,
            "note": "a 7",
        }
        assert request.headers | {"content-length": ""} == plain.headers | {"content-length": ""}


@many
@given(queries)
def test_joined_words_hold_nothing_but_words(listener, query):
    listener.requests.clear()
    engine = JsonHttp(described(listener.url + "/find?q={query}", join_words=" OR "))
    engine.search([query], 7)
    expected = words(carried(query))
    assert len(listener.requests) == bool(expected)
    for request in listener.requests:
        ((name, sent),) = parse_qsl(urlsplit(request.target).query, strict_parsing=True)
        assert name == "q"
        assert sent.split(" OR ") == expected
        assert re.fullmatch(r"[\w']+( OR [\w']+)*", re.sub(r"[^\x00-\x7f]", "x", sent))


# Descriptions


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"url": "search.example.org/?q={query}"}, "must look like https://"),
        ({"url": "ftp://search.example.org/?q={query}"}, "must look like https://"),
        ({"url": "https://search.example.org:port/?q={query}"}, "must look like https://"),
        ({"url": "https://me:secret@search.example.org/?q={query}"}, "a user or a password"),
        ({"url": "https://{query}.example.org/"}, "may only be values"),
        ({"url": "https://search.example.org/{query}?n={depth}"}, "may only be values"),
        ({"url": "https://search.example.org/?{query}=1"}, "may only be values"),
        ({"url": "https://search.example.org/?q={query}#x"}, "without '#'"),
        ({"url": "https://search.example.org/?q={query} x"}, "percent-encoded ASCII"),
        ({"url": "https://search.example.org/?q=fish"}, "{query} must stand once"),
        ({"url": "https://search.example.org/?q={query}&r={query}"}, "{query} must stand once"),
        ({"url": "https://search.example.org/?q={query}&r={rows}"}, "knows {query} and {depth}"),
        ({"method": "PUT"}, '"GET", or "POST" with a [body]'),
        ({"method": "POST"}, '"GET", or "POST" with a [body]'),
        ({"method": "GET", "body": {}}, '"GET", or "POST" with a [body]'),
        ({"body": {"text": "{query}"}}, "{query} must stand once"),
        ({"body": "{query}"}, "must be a table: [body]"),
        ({"headers": {"X-Number": 3}}, "the header X-Number must be a text"),
        ({"headers": {"X Number": "3"}}, "letters, digits and '-' only"),
        ({"titel": "title"}, "did you mean 'title'?"),
        ({"name": 3}, "'name' in the engine's file must be a text"),
        ({"id": ""}, "'id' must not be empty"),
        ({"pause": "1"}, "'pause' in the engine's file must be a number of seconds"),
        ({"pause": -1}, "'pause' in the engine's file must be a number of seconds"),
        ({"timeout": 0}, "'timeout' not be 0"),
        ({"timeout": float("inf")}, "'timeout' in the engine's file must be a number of seconds"),
        ({"retries": True}, "'retries' in the engine's file must be a whole number"),
        ({"most_queries": 2.5}, "'most_queries' in the engine's file must be a whole number"),
    ],
)
def test_a_wrong_description_says_what_to_write(said, message):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        JsonHttp(described("https://search.example.org/?q={query}") | said)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["name", "url", "results", "id"])
def test_a_missing_key_is_named(key):
    said = described("https://search.example.org/?q={query}")
    del said[key]
    with pytest.raises(UsageError, match=f"lacks '{key}'"):
        JsonHttp(said)


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        JsonHttp.from_file(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_bytes(b"name = \xff")
    with pytest.raises(UsageError, match="not a TOML file"):
        JsonHttp.from_file(tmp_path / "bad.toml")


def test_servers_elsewhere_are_asked_little_and_slowly():
    elsewhere = JsonHttp(described("https://search.example.org/?q={query}"))
    assert (elsewhere.remote, elsewhere.pause, elsewhere.most_queries) == (True, 1.0, 20)
    assert elsewhere.name == "test at search.example.org"
    with pytest.raises(UsageError, match="at most 20 queries a search, got 21"):
        elsewhere.search(["fish"] * 21, 10)
    here = JsonHttp(described("http://localhost:8080/?q={query}"))
    assert (here.remote, here.pause, here.most_queries) == (False, 0.0, None)
    assert here.name == "test at localhost:8080"
    mine = described("https://search.example.org/?q={query}", pause=0.5, most_queries=0)
    assert (JsonHttp(mine).pause, JsonHttp(mine).most_queries) == (0.5, None)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("localhost", True), ("LOCALHOST", True), ("a.localhost", True), ("127.9.9.9", True)),
        *(("::1", True), ("localhost.example.org", False), ("10.0.0.1", False)),
        *(("0.0.0.0", False), ("mylocalhost", False), ("127.0.0.1.example.org", False)),
    ],
)
def test_only_this_machine_is_this_machine(host, expected):
    assert is_loopback(host) is expected
    url = f"http://[{host}]/" if ":" in host else f"http://{host}/"
    assert Address.of(url).remote is not expected


def test_the_examples_of_the_documentation_are_valid(monkeypatch):
    monkeypatch.setenv("LIBRARY_KEY", "k")
    examples = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        JsonHttp(tomllib.loads(example))


# Answers


def answered(rows: object, **said) -> list[Hit]:
    with web(lambda request: reply({"results": rows})) as server:
        (hits,) = JsonHttp(described(server.url + "/?q={query}", **said)).search(["fish"], 10)
    return hits


def test_titles_and_snippets_are_plain_text():
    row = {
        "id": 7,
        "t": ["Salt &amp; <em>fresh</em>water", "tank<br>fish"],
        "s": "a < b\n\x1b[31m &lt;b&gt; <!-- i --> \ud800",
    }
    (hit,) = answered([row], title="t", snippet="s")
    assert hit == Hit("7", 1.0, "Salt & freshwater tank fish", "a < b [31m <b> \ufffd")


def test_a_hostile_title_takes_no_time():
    start = time.process_time()
    for piece in ("<!--", "<a ", "</", "<b<", "&#", "\n\x00 "):
        assert len(answered([{"id": "a", "t": piece * 500_000}], title="t")) == 1
    assert time.process_time() - start < 10


def test_missing_titles_and_snippets_are_empty():
    rows = [{"id": "a"}, {"id": "b", "t": None, "s": {"x": 1}}]
    assert answered(rows, title="t", snippet="s.y") == [Hit("a", 1.0), Hit("b", 0.5)]


def test_a_repeated_id_keeps_its_first_rank():
    rows = [{"id": "a", "t": "first"}, {"id": "a", "t": "second"}, {"id": "b"}, {"id": "a"}]
    assert answered(rows, title="t") == [Hit("a", 1.0, "first"), Hit("b", 0.5)]


def test_no_more_results_than_asked_for():
    assert len(answered([{"id": i} for i in range(99)])) == 10


def test_fields_are_found_by_dotted_paths_and_places():
    rows = [["a", {"deep": [{"score": 2}]}], ["b", {"deep": [{"score": 5.5}]}]]
    assert answered(rows, id="0", score="1.deep.0.score") == [Hit("a", 2.0), Hit("b", 5.5)]


@pytest.mark.parametrize("score", ["high", None, True, float("nan"), float("inf"), 10**400])
def test_a_score_that_is_no_number_is_an_error(score):
    with pytest.raises(EngineError, match="no number at 's'"):
        answered([{"id": "a", "s": score}], score="s")


def test_an_answer_that_is_the_list_itself_will_do():
    with web(lambda request: reply([{"id": "a"}])) as server:
        engine = JsonHttp(described(server.url + "/?q={query}", results=""))
        assert engine.search(["fish"], 10) == [[Hit("a", 1.0)]]


def test_nothing_asked_for_is_nothing_sent(listener):
    listener.requests.clear()
    engine = JsonHttp(described(listener.url + "/?q={query}"))
    assert engine.search([], 10) == []
    assert engine.search(["fish"], 0) == [[]]
    assert engine.search([" \n"], 10) == [[]]
    assert listener.requests == []
    with pytest.raises(UsageError, match="depth cannot be negative"):
        engine.search(["fish"], -1)


# OpenSearch, by its public protocol


class Cluster:
    """Answers _msearch as the documentation of OpenSearch says, and accepts nothing else."""

    def __init__(self, bm25: BM25, titles: dict[str, str]) -> None:
        self.bm25, self.titles = bm25, titles
        self.asked: list[list[str]] = []

    def __call__(self, request: Request) -> list[bytes]:
        if (request.method, request.headers["content-type"]) != ("POST", "application/x-ndjson"):
            return reply({"error": "Content-Type header is not supported", "status": 406}, 406)
        path = re.fullmatch(r"/prefix/([a-z]+)/_msearch", request.target)
        *lines, last = request.body.decode("utf-8").split("\n")
        if path is None or last or len(lines) % 2 or not lines:
            return reply({"error": {"type": "illegal_argument_exception"}, "status": 400}, 400)
        for line in lines[::2]:
            # The same copies of the shards must answer all, or equal queries may differ.
            assert json.loads(line) == {"preference": "sottovoce"}
        bodies = [json.loads(line) for line in lines[1::2]]
        self.asked.append([body["query"]["multi_match"]["query"] for body in bodies])
        found = [self.one(body, path[1]) for body in bodies]
        return reply({"took": 1, "responses": found})

    def one(self, body: dict, index: str) -> dict:
        if index != "articles":
            reason = {"type": "index_not_found_exception", "reason": f"no such index [{index}]"}
            return {"error": {"root_cause": [reason], **reason}, "status": 404}
        assert body.keys() <= {"query", "size", "from", "_source", "track_total_hits", "highlight"}
        assert body["query"].keys() == {"multi_match"}
        match = body["query"]["multi_match"]
        assert match.keys() <= {"query", "fields", "type", "operator"}
        assert match["fields"] == ["title", "text"]
        assert isinstance(match["query"], str)
        (hits,) = self.bm25.search([match["query"]], body["size"])
        rows = [
            {
                "_index": index,
                "_id": hit.doc_id,
                "_score": hit.score,
                "_source": {"title": self.titles[hit.doc_id], "text": self.bm25.text(hit.doc_id)},
            }
            for hit in hits
        ]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        top = hits[0].score if hits else None
        return {
            "took": 1,
            "timed_out": False,
            "_shards": shards,
            "status": 200,
            "hits": {"max_score": top, "hits": rows},
        }


@pytest.fixture
def cluster(bm25, library, monkeypatch):
    for name in ("USER", "PASSWORD", "API_KEY"):
        monkeypatch.delenv(f"SOTTOVOCE_OPENSEARCH_{name}", raising=False)
    answer = Cluster(bm25, {document.doc_id: document.title for document in library})
    with web(answer) as server:
        server.cluster = answer
        yield server


def test_opensearch_gets_all_queries_in_one_request(cluster, bm25, library):
    engine = OpenSearch(cluster.url + "/prefix/", "articles")
    asked = ["zebra willow", "river", "nothing of this", "anchor zebra"]
    answers = engine.search(asked, 10)
    assert cluster.cluster.asked == [asked]
    assert [[(hit.doc_id, hit.score) for hit in hits] for hits in answers] == [
        [(hit.doc_id, hit.score) for hit in hits] for hits in bm25.search(asked, 10)
    ]
    titles = {document.doc_id: document.title for document in library}
    assert all(hit.title == titles[hit.doc_id] for hits in answers for hit in hits)
    assert all(hit.snippet.startswith(hit.title) for hits in answers for hit in hits)


def test_opensearch_splits_what_would_be_too_large_an_answer(cluster):
    engine = OpenSearch(cluster.url + "/prefix", "articles")
    assert len(engine.search(["river", "zebra", "oak"], 500)) == 3
    assert cluster.cluster.asked == [["river", "zebra"], ["oak"]]


@many
@given(queries)
def test_any_query_is_one_string_of_msearch(cluster, query):
    cluster.cluster.asked.clear()
    OpenSearch(cluster.url + "/prefix", "articles").search([query, "zebra"], 3)
    assert cluster.cluster.asked == [[carried(query), "zebra"]]


def test_opensearch_says_what_is_wrong(cluster):
    with pytest.raises(EngineError, match="no such index"):
        OpenSearch(cluster.url + "/prefix", "missing").search(["zebra"], 3)
    with pytest.raises(EngineError, match="status 400"):
        OpenSearch(cluster.url + "/elsewhere", "articles").search(["zebra"], 3)
    with pytest.raises(UsageError, match="an index has a name of small letters"):
        OpenSearch(cluster.url, "_all/_search?q=")
    with pytest.raises(UsageError, match="fields must be a list"):
        OpenSearch(cluster.url, "articles", fields="title")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"responses": []}, "does not answer as OpenSearch does"),
        ({"error": "zyzzyva"}, "does not answer as OpenSearch does"),
        ({"responses": [{"error": {"reason": "zyzzyva"}, "status": 500}]}, "status 500"),
        ({"responses": [{"status": 200, "timed_out": True, "hits": {"hits": []}}]}, "in part only"),
        (
            {"responses": [{"status": 200, "_shards": {"failed": 1}, "hits": {"hits": []}}]},
            "in part only",
        ),
        (
            {"responses": [{"status": 200, "hits": {"hits": [{"_id": "a"}]}}]},
            "no number at '_score",
        ),
    ],
)
def test_opensearch_takes_no_half_answers(answer, message):
    with web(lambda request: reply(answer)) as server:
        with pytest.raises(EngineError, match=message) as caught:
            OpenSearch(server.url, "articles").search(["zyzzyva"], 3)
        assert "zyzzyva" not in str(caught.value)


@pytest.mark.parametrize("kind", ["basic", "key"])
def test_opensearch_credentials_come_from_the_environment(monkeypatch, kind):
    if kind == "basic":
        monkeypatch.setenv("SOTTOVOCE_OPENSEARCH_USER", "me")
        monkeypatch.setenv("SOTTOVOCE_OPENSEARCH_PASSWORD", "pässword")
        expected = "Basic " + base64.b64encode("me:pässword".encode()).decode()
    else:
        monkeypatch.setenv("SOTTOVOCE_OPENSEARCH_API_KEY", "a2V5")
        expected = "ApiKey a2V5"
    with web(lambda request: reply({}, 403)) as server:
        with pytest.raises(EngineError) as caught:
            OpenSearch(server.url, "articles").search(["zebra"], 3)
        assert server.requests[0].headers["authorization"] == expected
        assert expected.split()[1] not in str(caught.value)
    with pytest.raises(UsageError, match="would travel in clear"):
        OpenSearch("http://search.example.org", "articles")


# Choosing


def test_engines_are_chosen_by_name(library, tmp_path):
    assert isinstance(choose_engine("bm25", library), BM25)
    assert isinstance(choose_engine("tfidf", library), TfIdf)
    assert isinstance(choose_engine("dense:light", library[:3]), Dense)
    (tmp_path / "e.toml").write_text(
        'name="e"\nurl="http://localhost/?q={query}"\nresults="r"\nid="i"'
    )
    assert choose_engine(f"http:{tmp_path}/e.toml").name == "e at localhost"
    with pytest.warns(PrivacyWarning):
        assert choose_engine("opensearch:http://a.example:9200/docs").name == (
            "opensearch at a.example:9200"
        )
    pytest.importorskip("psycopg", reason="pip install 'sottovoce[postgres]'")
    assert (
        choose_engine("postgres:postgresql://me:pw@db.example/x#t").name == "postgres at db.example"
    )
    assert choose_engine("postgres:dbname=x#public.t:slug,,body").name == "postgres at localhost"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bm52", "did you mean 'bm25'?"),
        ("tf-idf", "did you mean 'tfidf'?"),
        ("opensearch", "did you mean 'opensearch:URL/INDEX'?"),
        ("postgres:dbname=x", "did you mean 'postgres:DSN#TABLE'?"),
        ("postgres:dbname=x#t:a,b", "name three columns"),
        ("postgres:#", "name the table"),
        ("http:", "describe it in a TOML file"),
        ("http://search.example.org", "describe it in a TOML file"),
        ("https://search.example.org", "describe it in a TOML file"),
        (
            "zyzzyva of mine",
            "dense:ENCODER, stored:FOLDER, stored-dense:FOLDER, http:FILE.toml",
        ),
        ("bm25:zyzzyva", "use en, de"),
        ("", "use bm25, bm25:de, tfidf"),
    ],
)
def test_a_wrong_name_says_what_to_type_and_repeats_nothing(library, spec, message):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        choose_engine(spec, library)
    assert "zyzzyva" not in str(caught.value)


@pytest.mark.parametrize("spec", ["bm25", "tfidf", "dense"])
def test_an_engine_on_this_machine_needs_documents(spec):
    with pytest.raises(UsageError, match="say which"):
        choose_engine(spec)


@pytest.mark.parametrize("wrong", [None, "", True, 1.5, ["1"], {"id": "1"}])
def test_a_result_without_an_id_is_no_result(wrong):
    fields = Fields(id="id")
    rows = [{"id": "1", "text": "one"}, {"id": wrong, "text": "two"}]
    with pytest.raises(EngineError, match="somewhere: a result has no id at 'id'"):
        read_hits("somewhere", rows, fields, 2)
    assert [hit.doc_id for hit in read_hits("somewhere", rows, fields, 1)] == ["1"]
    assert [hit.doc_id for hit in read_hits("somewhere", [{"id": 0}], fields, 1)] == ["0"]
