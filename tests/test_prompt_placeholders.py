"""Placeholders, and back again however an answer is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sottovoce.prompts import AnswerStream, Listed, Patterns, Restorer, Table, restore
from sottovoce.prompts.answers import restored_answer

FINDERS = (Patterns(), Listed(["Zebulon"]))


def sent(table: Table, *texts: str) -> list[str]:
    return ["".join(piece.text for piece in pieces) for pieces in table.cut(texts, FINDERS)]


def test_the_same_value_gets_the_same_placeholder():
    table = Table()
    texts = ("write to a@mail.example or b@mail.example", "a@mail.example, dear Zebulon")
    assert sent(table, *texts) == [
        "write to [EMAIL_1] or [EMAIL_2]",
        "[EMAIL_1], dear [NAME_1]",
    ]
    assert table.kinds == {"EMAIL": 2, "NAME": 1}
    assert restore("Ask [EMAIL_2] of [NAME_1]; [EMAIL_3]?", table) == (
        "Ask b@mail.example of Zebulon; [EMAIL_3]?"
    )
    assert "mail" not in repr(table)


def test_a_conversation_that_grows_keeps_its_placeholders():
    first = ["I am a@mail.example", "call 555-0199"]
    before = sent(Table(), *first)
    assert sent(Table(), *first, "and b@mail.example")[:2] == before


def test_a_value_found_once_is_replaced_wherever_it_stands():
    assert sent(Table(), "password: hunter2x", "it was xhunter2xx, I think") == [
        "password: [SECRET_1]",
        "it was x[SECRET_1]x, I think",
    ]


def test_words_that_look_like_placeholders_are_nobodys():
    table = Table(["what does [EMAIL_1] mean?"])
    assert sent(table, "I am a@mail.example") == ["I am [EMAIL_2]"]
    assert restore("[EMAIL_1] is [EMAIL_2]", table) == "[EMAIL_1] is a@mail.example"


@given(st.data())
def test_an_answer_in_any_pieces_is_the_answer_as_a_whole(data):
    table = Table()
    sent(table, "a@mail.example 555-0199 192.168.0.1 Zebulon")
    part = st.sampled_from(
        ["[EMAIL_1]", "[PHONE_1]", "[IP_1", "[", "]", "[[", "[NAME_1]", " so ", "[EMAIL_11]", "é"]
    )
    answer = "".join(data.draw(st.lists(part, max_size=12)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    pieces = [answer[i:j] for i, j in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    restorer = Restorer(table)
    whole = "".join(map(restorer.feed, pieces)) + restorer.finish()
    assert whole == restore(answer, table)
    assert "[EMAIL_1]" not in whole
    assert whole.count("a@mail.example") == answer.count("[EMAIL_1]")


def test_only_what_may_begin_a_placeholder_is_held_back():
    table = Table()
    sent(table, "a@mail.example")
    restorer = Restorer(table)
    assert restorer.feed("see [1] and [EM") == "see [1] and "
    assert restorer.feed("AIL_1") == ""
    assert restorer.feed("] now") == "a@mail.example now"
    assert restorer.feed("[x") == "[x"


def test_no_value_is_put_into_an_address():
    table = Table()
    sent(table, "a@mail.example https://bank.example/?q= Zebulon")
    assert restore("![x](https://evil.example/?[EMAIL_1]) [EMAIL_1]", table) == (
        "![x](https://evil.example/?[EMAIL_1]) a@mail.example"
    )
    assert "mail" not in restore("[URL_1][EMAIL_1]", table)
    restorer = Restorer(table)
    pieces = "".join(map(restorer.feed, ["http:/", "/evil.ex", "ample/", "[EMA", "IL_1]"]))
    assert "mail" not in pieces


def test_each_choice_of_an_answer_is_put_back_by_itself():
    table = Table()
    sent(table, "a@mail.example")
    stream = AnswerStream(table)

    def piece(*deltas, finish=None):
        choices = [
            {"index": index, "delta": {"content": text}, "finish_reason": finish}
            for index, text in deltas
        ]
        answered = stream.piece({"id": "x", "choices": choices})
        return [choice["delta"]["content"] for choice in answered["choices"]]

    assert piece((0, "to [EMA"), (1, "or [")) == ["to ", "or "]
    assert piece((1, "EMAIL_1]"), (0, "IL_1]")) == ["a@mail.example", "a@mail.example"]
    assert piece((0, "[EM")) == [""]
    assert piece((0, ""), finish="stop") == ["[EM"]
    assert stream.rest() is None
    piece((1, "[E"))
    assert stream.rest()["choices"][0]["delta"] == {"content": "[E"}


def test_a_whole_answer_keeps_what_it_had():
    table = Table()
    sent(table, "a@mail.example")
    answer = {"id": "x", "choices": [{"index": 0, "message": {"content": "[EMAIL_1]", "n": 1}}]}
    assert restored_answer(answer, table) == {
        "id": "x",
        "choices": [{"index": 0, "message": {"content": "a@mail.example", "n": 1}}],
    }
    assert restored_answer({"choices": "odd"}, table)["choices"] == []
