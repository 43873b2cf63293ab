"""Identifiers by how they are written, also where somebody tries to hide them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.prompts.identifiers import KINDS, Identifier, Listed, Patterns, find_all, is_card
from sottovoce.prompts.presidio import Presidio

WRITTEN = [
    ("EMAIL", "zebulon.o'hara+x@mail.example.co.uk"),
    ("EMAIL", "zebulon@localhost"),
    ("PHONE", "+49 (30) 123-4567"),
    ("PHONE", "06 12 34 56 78"),
    ("PHONE", "555-0199"),
    ("PHONE", "078-05-1120"),
    ("IBAN", "DE89 3704 0044 0532 0130 00"),
    ("IBAN", "GB82WEST12345698765432"),
    ("CARD", "4111 1111 1111 1111"),
    ("CARD", "378282246310005"),
    ("IP", "192.168.0.1"),
    ("IP", "2001:db8::ff00:42:8329"),
    ("URL", "https://bank.example/account?id=7"),
    ("URL", "www.clinic.example/zebulon"),
    ("DATE", "1978-03-14"),
    ("DATE", "14.03.1978"),
    ("DATE", "March 14th, 1978"),
    ("DATE", "14 Mar 1978"),
    ("SECRET", "sk-proj-abcdefgh12345678"),
    ("SECRET", "ghp_0123456789abcdefghij"),
    ("SECRET", "AKIAIOSFODNN7EXAMPLE"),
    ("SECRET", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def"),
    ("KEY", "9fceb02d0ae598e95dc970b74767f19372d61af8"),
    ("HANDLE", "@zebulon_q"),
    ("NUMBER", "12345"),
    ("NUMBER", "X1234567"),
]
HARMLESS = [
    "the secret to happiness is love, and the token is good",
    "in 2023-2024 it rose by 3.14 to 1,000,000 or 12.50 at 10:30",
    "sort 10 20 30 40, with python3.11 and gpt-4o",
    "see section 4.2.1 :: and a/b or (c)",
]


def shown(text: str, *finders) -> list[tuple[str, str]]:
    return [
        (match.kind, text[match.start : match.end])
        for match in find_all(text, finders or (Patterns(),))
    ]


@pytest.mark.parametrize(("kind", "value"), WRITTEN, ids=[value for _, value in WRITTEN])
@pytest.mark.parametrize("around", ["{}", "Write to {}, please.", "({})", 'x "{}"!', "a {} ok 7"])
def test_what_is_written_like_an_identifier_is_found(kind, value, around):
    assert shown(around.format(value)) == [(kind, value)]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_stays(text):
    assert shown(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2",
        "Passwd=Tr0ub4dor&3",
        'api_key = "abcdef"',
        "my password is correcthorse9",
    ],
)
def test_a_password_is_found_behind_its_name(text):
    ((kind, value),) = shown(text)
    assert kind == "SECRET"
    assert text.rstrip('"').endswith(value)


def test_a_private_key_is_one_secret_also_without_its_end():
    whole = "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----"
    assert shown(f"a {whole} b") == [("SECRET", whole.rstrip())]
    assert shown("-----BEGIN PRIVATE KEY-----\nMIIE abc def")[0][1].endswith("def")


@pytest.mark.parametrize(("kind", "value"), [WRITTEN[0], WRITTEN[8], WRITTEN[10], WRITTEN[14]])
def test_invisible_and_wide_characters_hide_nothing(kind, value):
    invisible = "\u200b".join(value)
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value)
    assert shown(invisible) == [(kind, invisible)]
    assert shown(wide) == [(kind, wide)]


def test_check_digits_decide():
    assert is_card("4111 1111 1111 1111")
    assert not is_card("4111 1111 1111 1112")
    assert shown("DE88 3704 0044 0532 0130 00") != [("IBAN", "DE88 3704 0044 0532 0130 00")]


def test_kinds_can_be_chosen_and_others_are_refused():
    text = "a@b.example, 192.168.0.1"
    assert shown(text, Patterns(("IP",))) == [("IP", "192.168.0.1")]
    with pytest.raises(UsageError, match="did you mean 'EMAIL'"):
        Patterns(("E-MAIL",))


def test_listed_names_match_in_any_case_as_whole_words():
    names = Listed(["Zebulon Quartermaine", "O'Hara", " "])
    text = "ZEBULON  quartermaine's aunt O'Hara, not O'Haras"
    assert [value for _, value in shown(text, names)] == ["ZEBULON  quartermaine", "O'Hara"]
    assert Listed([]).find("anything") == []


@given(st.text(max_size=200), st.text(max_size=30))
def test_what_overlaps_is_one_identifier(before, after):
    text = f"{before}zebulon@mail.example 4111 1111 1111 1111{after}"
    matches = find_all(text, (Patterns(), Listed(["zebulon"])))
    ends = [match.end for match in matches]
    assert all(end <= match.start for end, match in zip(ends, matches[1:], strict=False))
    covered = "".join(text[match.start : match.end] for match in matches)
    assert "zebulon@mail.example" in covered


@pytest.mark.parametrize("unit", ["a", "1", "0 ", "a@", "1.", "::", "DE89 ", "password ", "+1 "])
def test_long_texts_take_time_in_proportion(unit):
    Patterns().find("warm up")
    begun = time.process_time()
    Patterns().find(unit * (6_000 // len(unit)))
    assert time.process_time() - begun < 3


class Analyzer:
    """As Presidio's, for what it may do wrong."""

    def __init__(self, outcome):
        self.outcome = outcome

    def analyze(self, **_):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_presidio_that_fails_says_nothing_of_the_text():
    with pytest.raises(SottovoceError, match="ValueError") as failure:
        Presidio(analyzer=Analyzer(ValueError("zebulon"))).find("zebulon")
    assert "zebulon" not in str(failure.value)
    assert failure.value.__cause__ is None


def test_presidio_without_its_model_says_what_to_do():
    pytest.importorskip("presidio_analyzer", reason="pip install 'sottovoce[presidio]'")
    with pytest.raises(SottovoceError, match="spacy download"):
        Presidio("no_such_model_here")


def test_the_real_presidio_finds_its_kinds(tmp_path):
    pytest.importorskip("presidio_analyzer", reason="pip install 'sottovoce[presidio]'")
    spacy = pytest.importorskip("spacy")
    blank = spacy.blank("en")
    ruler = blank.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Zebulon Quartermaine"}])
    blank.to_disk(tmp_path / "model")
    finder = Presidio(str(tmp_path / "model"))
    text = "Zebulon Quartermaine wrote from zebulon@mail.example."
    assert ("PERSON", "Zebulon Quartermaine") in shown(text, finder)
    assert shown(text, Patterns(), finder) == [
        ("PERSON", "Zebulon Quartermaine"),
        ("EMAIL", "zebulon@mail.example"),
    ]


def test_an_identifier_shows_no_text():
    assert repr(Identifier(1, 2, KINDS[0])) == "Identifier(SECRET, 1, 2)"
