"""Tests of the jobs of ``cover.py``, on a collection, a log and a space of made-up words."""

# ruff: noqa: D103 - the names say it

from __future__ import annotations

import json
from pathlib import Path

import cover_words
import numpy as np
import pytest
import spaces
from cover import CoverJob, compute
from cover_bench import KNOWS_KIND, KNOWS_LOG, OWN, SHORT_LIST, CoverBench
from cover_page import Measured, Row, Section, draw, merge, print_together, read_sections
from cover_tables import print_attacks, print_tables, sections
from cover_words import COUNTS, ChorusJob, TextsJob, WordsJob

from sottovoce.spaces.space import WordSpace

RNG = np.random.default_rng(5)
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "ra", "su", "ti", "vo")
WORDS = [f"{a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:3]]
LOG = [" ".join(RNG.choice(WORDS, RNG.integers(2, 5))) for _ in range(400)]
QUERIES = LOG[:8]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CoverBench:
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    vectors = np.random.default_rng(42).standard_normal((len(WORDS), 20))
    space = WordSpace.from_arrays(WORDS, vectors, name="small")
    for module in (cover_words, spaces):
        monkeypatch.setattr(module, "load_space", lambda _: space)
    monkeypatch.setattr("sottovoce.privacy.attacks.run.LIKELY", 5)
    folder = tmp_path / "made-up"
    folder.mkdir()
    documents = [" ".join(RNG.choice(WORDS, 30)) for _ in range(60)]
    rows = [{"doc_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(documents)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows = [{"query_id": f"q{at}", "text": text} for at, text in enumerate(QUERIES)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "qrels.txt").write_text("\n".join(f"q{at} 0 d{at} 1" for at in range(len(QUERIES))))
    for kind, count in (("docs", 60), ("queries", len(QUERIES))):
        rows = np.random.default_rng(1).standard_normal((count, 8)).astype(np.float32)
        np.save(tmp_path / f"made-up_{kind}.npy", rows)
    monkeypatch.setitem(OWN, "made-up", ("sentences",))
    base = spaces.Bench(folder, LOG, tmp_path, 8)
    return CoverBench(base, folder, LOG, LOG[:200], tmp_path, "light")


@pytest.mark.parametrize(
    "job",
    [
        WordsJob("cmp", 6, "once", "bm25", (20, 50)),
        WordsJob("cmp", 3, "independent", "bm25", COUNTS),
        WordsJob("santext", 2, "independent", "dense", COUNTS),
        TextsJob("comet-cmp", 5, "bm25", (20,)),
        TextsJob("versatile", None, "bm25", (20,)),
        ChorusJob(6, "bm25", (20,)),
    ],
)
def test_a_cell_for_each_number_of_queries(
    bench: CoverBench, job: WordsJob | TextsJob | ChorusJob
) -> None:
    cells = dict(job.cells(bench, seed=1))
    assert list(cells) == [f"{job.name} {count}" for count in job.counts]
    for count, cell in zip(job.counts, cells.values(), strict=True):
        assert cell["sent"] == count
        assert set(cell["ndcg"]) == {f"{job.engine} 100", f"{job.engine} 200"}
        others = {KNOWS_KIND} if isinstance(job, WordsJob) else set()
        assert set(cell["named"]) == {KNOWS_LOG, SHORT_LIST, *others}
        assert all(0 <= hit <= 1 for hits in cell["named"].values() for hit in hits.values())


def test_tables_and_figure_of_what_is_there(
    bench: CoverBench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs = [CoverJob("own", 20, 1, 0.97, "popular"), WordsJob("cmp", 6, "once", "bm25", (50,))]
    monkeypatch.setattr("cover.JOBS", {"some": lambda _: iter(jobs)})
    compute([bench], "some", "", [1, 2], tmp_path)
    assert len(list(tmp_path.glob("made-up--*.json"))) == 4
    print_attacks(tmp_path)
    attacks = capsys.readouterr().out
    assert "cover own 20x1 0.97 popular: 2 seeds, 20 queries" in attacks
    assert "  short list " in attacks
    print_tables(tmp_path)
    printed = capsys.readouterr().out
    assert "| 20 | cover 20 × 1, own | 2 |" in printed
    assert "| 50 | cmp, ε 6 | 2 |" in printed
    page = tmp_path / "page.md"
    page.write_text("# What it is\n\nSaid by hand.\n")
    merge(page, sections(tmp_path))
    written = page.read_text()
    assert written.startswith("# What it is\n\nSaid by hand.\n\n## Made-Up\n\n8 queries.")
    assert "| 20 | cover 20 × 1, own | 2 |" in written
    draw(read_sections(written), tmp_path / "figure.svg")
    assert "who has a short list" in (tmp_path / "figure.svg").read_text()


PLAIN = "8 queries. The queries themselves find .500, .510 by BM25 and .400, .410 by dense search."


def test_a_page_keeps_what_was_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = Section(
        "Made-Up",
        PLAIN,
        (
            Row(50, "aea", {"bm25": Measured("1", ".10", "", ".20", ".300, .310")}),
            Row(
                50,
                "cmp, ε 5",
                {
                    "bm25": Measured("5", ".11", ".15", ".21", ".301, .311"),
                    "dense": Measured("4", ".12", "", ".22", ".302, .312"),
                },
            ),
            Row(20, "random strings", {"dense": Measured("5", "", "", "", ".303, .313")}),
        ),
    )
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nSaid by hand.\n")
    merge(page, [old])
    before = page.read_text()
    assert (
        "| 50 | cmp, ε 5 | 5; 4 | .11 | .15 | .21 | .301, .311 | .12 |  | .22 | .302, .312 |"
        in before
    )
    assert before.index("| 20 |") < before.index("| 50 |")
    merge(page, read_sections(before))
    assert page.read_text() == before
    again = Row(50, "cmp, ε 5", {"bm25": Measured("3", ".99", "1.00", ".98", ".305, .315")})
    merge(page, [Section("Made-Up", PLAIN, (again,))])
    after = page.read_text()
    assert (
        "| 50 | cmp, ε 5 | 3; 4 | .99 | 1.00 | .98 | .305, .315 | .12 |  | .22 | .302, .312 |"
        in after
    )
    assert "| 50 | aea | 1 | .10 |  | .20 | .300, .310 |" in after
    fewer = Row(50, "aea", {"bm25": Measured("2", ".77", ".78", ".79", ".305, .315")})
    merge(page, [Section("Made-Up", PLAIN, (fewer,))], only_fill=True)
    assert "| 50 | aea | 1 | .10 | .78 | .20 | .300, .310 |" in page.read_text()
    print_together(read_sections(after))
    printed = capsys.readouterr().out
    assert "| **BM25**: the query itself | .500 |" in printed
    assert "| cmp, ε 5 | .99 · 1.00 · .98 · .305 |" in printed
    assert "| cmp, ε 5 | .12 · – · .22 · .302 |" in printed
