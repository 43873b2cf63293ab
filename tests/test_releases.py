"""Files of releases: what is read, and how wrong files are refused."""

import gzip
import json

import pytest

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.privacy.attacks.releases import parse_releases, read_releases

CSV = "id,text,obfuscatedText,mechanism,epsilon\n7,a b,c d,CMP,10\n7,a b,e f,CMP,10\n8,x,y,CMP,10\n"


def test_csv_rows_of_one_text_become_its_variants(tmp_path):
    file = tmp_path / "releases.csv"
    file.write_text(CSV)
    first, second = read_releases(file)
    assert (first.id, first.text, first.variants) == ("7", "a b", ("c d", "e f"))
    assert (first.mechanism, first.epsilon, second.variants) == ("CMP", 10.0, ("y",))


def test_rows_of_one_text_need_not_be_neighbours():
    shuffled = "id,text,obfuscatedText\n7,a,b\n8,x,y\n7,a,c\n"
    assert [each.variants for each in parse_releases(shuffled)] == [("b", "c"), ("y",)]


def test_what_obfuscate_writes_is_read_back(tmp_path, toy):
    from sottovoce import Obfuscator, mechanism

    results = list(Obfuscator(mechanism("cmp", space=toy), n=3).obfuscate(["a b", "c"]))
    file = tmp_path / "releases.jsonl.gz"
    lines = "\n".join(json.dumps(each.to_dict()) for each in results)
    file.write_bytes(gzip.compress(lines.encode()))
    read = read_releases(file)
    assert [each.text for each in read] == ["a b", "c"]
    assert [each.variants for each in read] == [each.variants for each in results]
    assert (read[0].mechanism, read[0].epsilon, read[0].release) == (
        "cmp:epsilon=10",
        10.0,
        "independent",
    )


def test_what_several_mechanisms_made_of_a_text_is_not_mixed():
    rows = "1,a,b,cmp,1\n1,a,c,cmp,5\n1,a,d,santext,5\n1,a,e,cmp,1\n"
    found = parse_releases("id,text,obfuscatedText,mechanism,epsilon\n" + rows)
    assert [each.variants for each in found] == [("b", "e"), ("c",), ("d",)]


def test_separators_inside_a_text_do_not_end_its_line():
    text = "a\u2028b\x0bc\u0085d"
    line = json.dumps({"text": text, "variants": ["e"]}, ensure_ascii=False)
    assert [each.text for each in parse_releases(f"{line}\n{line}\n")] == [text, text]


def test_the_published_releases_are_read(shared_data):
    folder = shared_data / "reference" / "msmarco-dl19"
    read = read_releases(folder / "CMP" / "obfuscatedText_CMP_12.5.csv.gz")
    assert len(read) == 43
    assert {len(each.variants) for each in read} == {50}
    assert {each.epsilon for each in read} == {12.5}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("id,text\n1,secret\n", "no column obfuscatedText"),
        ("id,text,obfuscatedText\n", "no release"),
        ("id,text,obfuscatedText\n1,secret\n", "line 2"),
        ("id,text,obfuscatedText\n1,secret,b,c\n", "line 2"),
        ('{"text": "secret"}\n', "line 1"),
        ('{"text": "secret", "variants": ["a"]}\n{"text": sec', "line 2"),
        ('{"text": "secret", "variants": [3]}', "line 1"),
        ('{"text": "secret", "variants": []}', "no release"),
        ('{"text": "secret", "variants": ["a"], "epsilon": "secret"}', "not a number"),
        ('{"text": "secret", "variants": ["a"], "epsilon": NaN}', "above 0"),
        ("id,text,obfuscatedText,epsilon\n1,secret,b,-3\n", "above 0"),
        ("id,text,obfuscatedText,epsilon\n1,secret,b,secret\n", "not a number"),
    ],
)
def test_wrong_files_are_refused_without_repeating_them(content, says):
    with pytest.raises(UsageError, match=says) as caught:
        parse_releases(content)
    assert "secret" not in str(caught.value)


def test_unreadable_files_say_why(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        read_releases(tmp_path / "secret.csv")
    with pytest.raises(UsageError, match="folder"):
        read_releases(tmp_path)
    latin = tmp_path / "latin.csv"
    latin.write_bytes("id,text,obfuscatedText\n1,café,b\n".encode("latin-1"))
    with pytest.raises(UsageError, match="line 2 of the file is not UTF-8"):
        read_releases(latin)
    latin.write_bytes(b"id,text,obfuscatedText\n1,a\0,b\n")
    with pytest.raises(UsageError, match="line 2 of the file holds a NUL"):
        read_releases(latin)
    latin.write_bytes(gzip.compress(CSV.encode())[:-9])
    with pytest.raises(SottovoceError, match="cannot be read"):
        read_releases(latin)


def test_a_release_does_not_print_its_text():
    assert "secret" not in repr(parse_releases("id,text,obfuscatedText\n1,secret,hidden\n"))
    assert "hidden" not in repr(parse_releases("id,text,obfuscatedText\n1,secret,hidden\n"))
