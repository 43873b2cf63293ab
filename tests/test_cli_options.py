"""Options that commands share: the groups, what they build, and what they refuse."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from sottovoce.cli.commands import PANELS, load_command
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import listed_epsilons
from sottovoce.cli.options import ResourceOptions, Seed, build_mechanisms, figure_option
from sottovoce.cli.output import print_json
from sottovoce.collections import demo_log
from sottovoce.errors import UsageError

SHARED = ("space", "output_vocabulary", "corpus", "pool", "as_json")


@dataclass(frozen=True)
class Near:
    """A group whose option is also used by another one."""

    panel: ClassVar[str] = "Near"
    where: Annotated[str, typer.Argument()]
    seed: Seed = None


@dataclass(frozen=True)
class Nearer(Near):
    """A group that adds to another one."""

    panel: ClassVar[str] = "Nearer"
    count: Annotated[int, typer.Option("-c")] = 3


def test_a_group_becomes_options_and_is_put_together_again():
    calls = []

    @grouped
    def command(group: Nearer, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        """Say what came."""
        calls.append((group, loud))

    single = typer.Typer()
    single.command()(command)
    assert CliRunner().invoke(single, ["here", "-c", "5", "--loud"]).exit_code == 0
    assert CliRunner().invoke(single, ["here", "--seed", "1"]).exit_code == 0
    assert CliRunner().invoke(single, ["-c", "5"]).exit_code == 2
    assert calls == [(Nearer("here", None, 5), True), (Nearer("here", 1, 3), False)]


def test_groups_that_share_an_option_show_it_each_under_its_own_panel():
    @grouped
    def command(group: Near) -> None:
        """Nothing."""

    @grouped
    def other(group: Nearer) -> None:
        """Nothing."""

    def panel(of):
        return of.__annotations__["seed"].__metadata__[0].rich_help_panel

    assert (panel(command), panel(other)) == ("Near", "Nearer")


def test_an_option_that_is_there_twice_is_a_mistake_of_the_author():
    def command(group: Near, seed: Seed = None) -> None:
        """Nothing."""

    with pytest.raises(TypeError, match="twice"):
        grouped(command)


def test_options_of_the_same_name_mean_the_same_in_all_commands():
    """``--encoder`` is that of a mechanism, except where an attacker or a measure has one."""
    helps: dict[str, set[str]] = {}
    for name in PANELS:
        for option in load_command(name).params:
            if option.name in SHARED:
                helps.setdefault(option.name, set()).add(str(option.help))
            if option.name == "seed" and name != "quipu":
                helps.setdefault("seed", set()).add(str(option.help))
    assert set(helps) == {*SHARED, "seed"}
    assert {len(texts) for texts in helps.values()} == {1}, helps


@pytest.fixture
def pool(tmp_path):
    file = tmp_path / "pool.txt"
    file.write_text("\n".join(demo_log()[:20]))
    return str(file)


def test_each_mechanism_comes_with_each_epsilon_and_shares_what_it_works_on(default_space, pool):
    resources = ResourceOptions(pool=pool, encoder="light")
    built = build_mechanisms(["cmp:epsilon=3", "comet-cmp"], [1.0, 2.0], resources)
    specs = ["cmp:epsilon=1", "cmp:epsilon=2", "comet-cmp:epsilon=1", "comet-cmp:epsilon=2"]
    assert [mechanism.spec for mechanism in built] == specs
    assert built[2].pool is built[3].pool


def test_a_resource_that_nothing_uses_is_refused(default_space):
    with pytest.raises(UsageError, match="--pool does nothing with cmp"):
        build_mechanisms(["cmp"], [], ResourceOptions(pool="demo"))
    with pytest.raises(UsageError, match="--encoder does nothing with cmp"):
        build_mechanisms(["cmp"], [], ResourceOptions(encoder="light"))
    (built,) = build_mechanisms(["cmp"], [], ResourceOptions(encoder="light"), ["encoder"])
    assert built.spec == "cmp:epsilon=10"


def test_a_mechanism_without_epsilon_comes_once_and_an_epsilon_for_none_is_refused(wordnet):
    resources = ResourceOptions()
    specs = [each.spec for each in build_mechanisms(["aea", "cmp"], [1.0, 2.0], resources)]
    assert specs == ["aea", "cmp:epsilon=1", "cmp:epsilon=2"]
    with pytest.raises(UsageError, match="-e does nothing with aea"):
        build_mechanisms(["aea"], [1.0], resources)


def test_epsilons_are_numbers_each_once():
    assert listed_epsilons(["5,10", "5", "2.5"]) == [5.0, 10.0, 2.5]
    assert listed_epsilons(None) == []
    with pytest.raises(UsageError, match="write -e 10") as refused:
        listed_epsilons(["5,melanoma"])
    assert "melanoma" not in str(refused.value)


@pytest.mark.parametrize("file", ["plane.pdf", "nowhere/plane.png", ""])
def test_a_figure_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    worked = []
    single = typer.Typer()

    @single.command()
    def command(figure: Annotated[Path | None, figure_option("Draw it.")] = None) -> None:
        worked.append(figure)

    refused = CliRunner().invoke(single, ["--figure", file])
    assert isinstance(refused.exception, UsageError)
    assert worked == []
    CliRunner().invoke(single, ["--figure", "plane.svg"])
    assert worked == [Path("plane.svg")]


@pytest.mark.parametrize(("encoding", "raw"), [("utf-8", "Fröbe"), ("latin-1", "Fr\\u00f6be")])
def test_json_is_json_whatever_standard_output_can_hold(monkeypatch, encoding, raw):
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", out)
    print_json({"paper": "Fröbe"})
    out.flush()
    printed = out.buffer.getvalue().decode(encoding)
    assert raw in printed
    assert json.loads(printed) == {"paper": "Fröbe"}
