"""Figures: whole or not there, the same for the same numbers, any names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.plotting import (
    check_figure_path,
    histogram,
    lines,
    new_figure,
    plane,
    save_figure,
)


def drawn(names=("cmp", "santext")):
    figure, plots = new_figure(1, 3, width=3, height=3)
    histogram(plots[0], {name: [0.1, 0.2, 0.2] for name in names})
    lines(
        plots[1],
        {name: ([1, 5, 10], [0, 0.5, 1]) for name in names},
        bands={names[0]: ([0, 0.4, 0.9], [0.1, 0.6, 1])},
        log_x=True,
    )
    plane(plots[2], {name: ([0, 0.5], [0.1, 0.9]) for name in names})
    return figure


@pytest.mark.parametrize("ending", ["png", "svg", "PNG"])
def test_the_same_numbers_give_the_same_file_and_nothing_else(tmp_path, ending):
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    save_figure(drawn(), first)
    save_figure(drawn(), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_figure_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    path.write_bytes(b"before")
    figure = drawn()

    def broken(name, **_):
        name.write_bytes(b"half")
        raise OSError

    monkeypatch.setattr(figure, "savefig", broken)
    with pytest.raises(SottovoceError, match="cannot be written"):
        save_figure(figure, path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_other_endings_and_missing_folders_are_refused_before_any_work(tmp_path):
    for path, said in (
        (tmp_path / "figure.pdf", "png or an .svg"),
        (tmp_path / "figure", "png or an .svg"),
        (tmp_path / "none" / "figure.png", "does not exist"),
    ):
        with pytest.raises(UsageError, match=said):
            check_figure_path(path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_figure_path(tmp_path / "folder.png")


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[lab\]"):
        check_figure_path(tmp_path / "figure.png")
    with pytest.raises(SottovoceError, match=r"sottovoce\[lab\]"):
        new_figure()


def test_any_name_is_drawn_as_it_is(tmp_path):
    save_figure(drawn(names=("_hidden", r"$\frac$")), tmp_path / "figure.svg")
    _, (plot,) = new_figure()
    lines(plot, {"_a": ([0, 1], [0, 1]), "$b$": ([0, 1], [0, 1])})
    assert [each.get_text().strip() for each in plot.get_legend().get_texts()] == ["_a", r"\$b\$"]


def test_nothing_goes_through_pyplot():
    program = (
        "import sys; from sottovoce.plotting import new_figure; new_figure(); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_a_histogram_shows_shares_and_leaves_out_what_is_not_a_number():
    _, (plot,) = new_figure()
    histogram(plot, {"a": [0.5, 0.5, 1.5, np.nan]}, bins=[0, 1, 2])
    shares = plot.patches[0].get_data().values
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3])


def test_no_two_of_twenty_curves_look_alike():
    _, (plot,) = new_figure()
    lines(plot, {str(number): ([0, 1], [0, number]) for number in range(20)})
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in plot.lines}
    assert len(looks) == 20
