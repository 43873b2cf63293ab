"""Everything that can go wrong between us and a server, over real sockets."""

from __future__ import annotations

import datetime
import ipaddress
import signal
import socket
import ssl
import time
import traceback
from email.utils import format_datetime
from itertools import pairwise

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from servers import HangUpError, Web, free_port, reply, web

from sottovoce.engines import http_client
from sottovoce.engines.base import EngineError
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import PrivacyWarning, UsageError

MARK = "zyzzyva"
"""A query that no error may hold."""
GOOD = reply({"results": [{"id": "a"}, {"id": "b"}]})
CAPTCHA = b"<html>Please solve this CAPTCHA to go on</html>"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(http_client, "FIRST_WAIT", 0.01)


def engine(server: Web | str, **said) -> JsonHttp:
    url = server if isinstance(server, str) else server.url
    described = {"name": "test", "url": url + "/find?q={query}", "results": "results", "id": "id"}
    return JsonHttp({**described, "timeout": 0.6, **said})


def failure(asked: JsonHttp, within: float = 3.0) -> str:
    """What the engine says when it fails; in time, and without the query."""
    start = time.monotonic()
    with pytest.raises(EngineError) as caught:
        asked.search([f"{MARK} fish"], 10)
    assert time.monotonic() - start < within
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert MARK not in shown
    assert "q=" not in shown
    assert type(caught.value) is EngineError
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def drip(head: bytes):
    """A byte every 0.1 s, for ever: each comes in time, the answer never does."""

    def answer(request):
        yield head
        while True:
            time.sleep(0.1)
            yield b"x"

    return answer


def silence(request):
    time.sleep(2)
    yield b""


def broken(*parts: bytes):
    def answer(request):
        yield from parts
        raise HangUpError

    return answer


def endless(request):
    yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    while True:
        yield b"[" * 100_000


def always(parts):
    return lambda request: parts


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
AT_ONCE = {
    "a byte at a time in the headers": (drip(HEAD), "did not answer in time"),
    "a byte at a time in the body": (drip(HEAD + b"\r\n"), "did not answer in time"),
    "a byte at a time from the first": (drip(b""), "did not answer in time"),
    "silence": (silence, "did not answer in time"),
    "garbage": (broken(b"\x00\xff\x13 garbage\n\n"), "did not answer in HTTP"),
    "too many headers": (broken(HEAD + b"A: b\r\n" * 200), "did not answer in HTTP"),
    "a web page": (always(reply(b"<html>Welcome</html>")), "web page instead of JSON"),
    "a captcha": (always(reply(CAPTCHA)), "wants to see a person"),
    "a captcha with 403": (always(reply(CAPTCHA, 403)), "wants to see a person"),
    "a captcha with 503": (always(reply(CAPTCHA, 503)), "wants to see a person"),
    "a captcha with 429": (always(reply(CAPTCHA, 429)), "wants to see a person"),
    "not JSON": (always(reply(b"{'results': []}")), "did not answer in JSON"),
    "not UTF-8": (always(reply(b'{"results": ["\xff\xfe"]}')), "did not answer in JSON"),
    "closed in the headers": (broken(HEAD), "did not answer in JSON"),
    "nothing": (always(reply(b"", 204)), "did not answer in JSON"),
    "very deep JSON": (always(reply(b"[" * 200_000)), "did not answer in JSON"),
    "no list": (always(reply({"results": {"id": "a"}})), "no list at 'results'"),
    "no results": (always(reply({"error": MARK})), "no list at 'results'"),
    "a result without id": (always(reply({"results": [{"title": MARK}]})), "no id at 'id'"),
    "a result that is none": (always(reply({"results": [MARK]})), "no id at 'id'"),
    "too much, as announced": (always(reply(b" " * 10_000_001)), "more than 10 MB"),
    "too much, without end": (endless, "more than 10 MB"),
    "400": (always(reply({"error": MARK}, 400)), "check url and body"),
    "401": (always(reply({"error": MARK}, 401)), "needs a key"),
    "403": (always(reply({"error": MARK}, 403)), "it blocks you"),
    "404": (always(reply({"error": MARK}, 404)), "check the path"),
    "405": (always(reply({"error": MARK}, 405)), "GET and POST"),
    "300": (always(reply({"results": []}, 300)), "which is not followed"),
    "499": (always(reply({"error": MARK}, 499)), "check url and body"),
    "500": (always(reply({"error": MARK}, 500)), "failed (status 500)"),
    "429 for an hour": (always(reply({}, 429, Retry_After="3600")), "left alone for 3600 s"),
    "503 for an hour": (always(reply({}, 503, Retry_After="3600")), "left alone for 3600 s"),
}
AGAIN = {
    "closed at once": (broken(), "closed the connection"),
    "closed in the body": (broken(HEAD + b"Content-Length: 99\r\n\r\n{"), "closed the connection"),
    "closed in a chunk": (
        broken(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{"),
        "closed the connection",
    ),
    "429": (always(reply({}, 429)), "too many requests"),
    "429 now": (always(reply({}, 429, Retry_After="0")), "too many requests"),
    "502": (always(reply({"error": MARK}, 502)), "not available now (status 502)"),
    "503": (always(reply(b"<html>busy</html>", 503)), "not available now (status 503)"),
    "504": (always(reply({}, 504)), "not available now (status 504)"),
}


@pytest.mark.parametrize("kind", AT_ONCE)
def test_what_another_try_cannot_help_fails_at_once(kind):
    answer, said = AT_ONCE[kind]
    with web(answer) as server:
        assert said in failure(engine(server))
        assert len(server.requests) == 1


def test_an_answer_exactly_as_large_as_may_be_is_read():
    body = b'{"results": []}'
    body += b" " * (http_client.MOST_BYTES - len(body))
    with web(always(reply(body))) as server:
        assert engine(server, timeout=5).search(["fish"], 3) == [[]]


@pytest.mark.parametrize("kind", AGAIN)
def test_what_may_pass_is_tried_again_and_no_more_often_than_told(kind):
    answer, said = AGAIN[kind]
    with web(answer) as server:
        assert said in failure(engine(server, retries=2))
        assert len(server.requests) == 3
    with web(answer) as server:
        failure(engine(server, retries=0))
        assert len(server.requests) == 1


def test_an_engine_that_recovers_answers():
    answers = [reply({}, 503), reply({}, 429), GOOD]
    with web(lambda request: answers[len(server.requests) - 1]) as server:
        (hits,) = engine(server).search([MARK], 10)
    assert [hit.doc_id for hit in hits] == ["a", "b"]


def test_waits_grow_from_one_retry_to_the_next(monkeypatch):
    waited = []
    monkeypatch.setattr(http_client, "rest", waited.append)
    with web(always(reply({}, 503))) as server:
        failure(engine(server, retries=4))
    assert [round(wait / (0.01 * 2**n), 2) for n, wait in enumerate(waited)] == pytest.approx(
        [1, 1, 1, 1], abs=0.5
    )
    assert len(set(waited)) == 4


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(as_date):
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2)
    asked = format_datetime(soon, usegmt=True) if as_date else "1"
    answers = [reply({}, 429, Retry_After=asked), GOOD]
    times = []

    def answer(request):
        times.append(time.monotonic())
        return answers[len(times) - 1]

    with web(answer) as server:
        engine(server).search([MARK], 10)
    assert 0.9 < times[1] - times[0] < 2.5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status):
    with web(always(GOOD)) as elsewhere:
        moved = reply({}, status, Location=f"{elsewhere.url}/find?q={MARK}")
        with web(always(moved)) as server:
            assert "another address" in failure(engine(server))
            assert len(server.requests) == 1
        assert elsewhere.requests == []


def test_a_server_that_is_down_says_so():
    message = failure(engine(f"http://127.0.0.1:{free_port()}"))
    assert "refused the connection: see whether the server is running" in message


def test_a_host_that_does_not_exist_says_so():
    with pytest.warns(PrivacyWarning):
        unknown = engine("http://sottovoce.invalid")
    assert "could not be found" in failure(unknown, within=30)


def test_queries_share_a_connection_and_nothing_is_remembered():
    with web(always(reply({"results": []}, Set_Cookie="id=7"))) as server:
        engine(server).search(["fish", "water", "tank"], 10)
    assert server.connections == 1
    assert len(server.requests) == 3
    first, *others = [request.headers for request in server.requests]
    assert all(headers == first for headers in others)
    assert first["user-agent"] == "sottovoce"
    assert "cookie" not in first


def test_a_connection_closed_between_queries_is_opened_again():
    with web(broken(*GOOD)) as server:
        answers = engine(server, retries=0).search(["fish", "water", "tank"], 10)
    assert [len(hits) for hits in answers] == [2, 2, 2]
    assert len(server.requests) == server.connections == 3


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_after_ctrl_c_the_next_query_gets_its_own_answer():
    def answer(request):
        if "q=slow" in request.target:
            yield reply({"results": [{"id": "late", "title": "t"}]})[0][:40]
            time.sleep(0.3)
        yield from reply({"results": [{"id": "own", "title": "t"}]})

    def interrupt(*_):
        raise KeyboardInterrupt

    with web(answer) as server:
        asked = engine(server)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                asked.search(["slow"], 5)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert [hit.doc_id for hit in asked.search(["quick"], 5)[0]] == ["own"]


def test_queries_keep_their_pause():
    times = []

    def answer(request):
        times.append(time.monotonic())
        return GOOD

    with web(answer) as server:
        asked = engine(server, pause=0.2)
        asked.search(["fish", "water"], 10)
        asked.search(["tank"], 10)
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))


# What travels, and how


def test_headers_come_from_the_environment_and_stay_out_of_errors(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "s3cret")
    with web(always(reply({}, 403))) as server:
        asked = engine(server, headers={"Authorization": "Bearer ${SOME_KEY}"})
        assert "s3cret" not in failure(asked) + repr(asked) + asked.name
    assert server.requests[0].headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\0b", "ключ"])
def test_a_header_cannot_become_two_and_its_value_is_not_repeated(monkeypatch, value):
    if "\0" not in value:
        monkeypatch.setenv("SOME_KEY", value)
        value = "${SOME_KEY}"
    with pytest.raises(UsageError, match="X-Key holds a line break or a sign outside") as caught:
        engine("http://127.0.0.1:9", headers={"X-Key": value})
    assert "Other" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable SOME_KEY"):
        engine("http://127.0.0.1:9", headers={"X-Key": "${SOME_KEY}"})


def test_credentials_never_travel_in_clear_and_queries_only_with_a_warning(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "s3cret")
    for header in ({"X-Key": "${SOME_KEY}"}, {"authorization": "Basic x"}):
        with pytest.raises(UsageError, match=r"search\.example\.org would travel in clear"):
            engine("http://search.example.org", headers=header)
    with pytest.warns(PrivacyWarning, match=r"search\.example\.org travel in clear"):
        engine("http://search.example.org")
    engine("https://search.example.org", headers={"X-Key": "${SOME_KEY}"})
    engine("http://localhost", headers={"X-Key": "${SOME_KEY}"})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody but itself vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_cannot_be_verified_gets_no_query(tls):
    with web(always(GOOD), tls) as server:
        message = failure(engine(f"https://127.0.0.1:{server.port}"))
        assert "certificate of 127.0.0.1" in message
        assert "self-signed" in message
        assert server.requests == []


def test_a_certificate_that_can_be_verified_is_enough(tls, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with web(always(GOOD), tls) as server:
        answers = engine(f"https://127.0.0.1:{server.port}").search(["fish", "tank"], 10)
    assert [len(hits) for hits in answers] == [2, 2]
    assert server.connections == 1


def test_https_to_a_server_without_it_says_so():
    with web(always(GOOD)) as server:
        assert "no secure connection" in failure(engine(f"https://127.0.0.1:{server.port}"))


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
def test_a_proxy_is_not_gone_around(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    engine = JsonHttp(
        {
            "name": "far",
            "url": "https://search.example.org/?q={query}",
            "results": "results",
            "id": "id",
        }
    )
    with pytest.raises(UsageError, match="nothing was sent") as caught:
        engine.search(["secretword"], 5)
    assert "secretword" not in str(caught.value)
    monkeypatch.setenv("no_proxy", "search.example.org")
    monkeypatch.setattr("socket.getaddrinfo", nowhere)
    with pytest.raises(EngineError, match="could not be found"):
        engine.search(["secretword"], 5)


def nowhere(*args, **kwargs):
    raise socket.gaierror
