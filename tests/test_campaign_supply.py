"""A moment of the supply campaign: nothing is found, and each planted defect is."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[data]'")

from campaigns import registry, supply
from campaigns.frame import generator
from campaigns.kill_scenes import home, remove

from sottovoce.errors import SpaceError
from sottovoce.resources import install

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    with supply.opened(tmp_path_factory.mktemp("supply")) as opened:
        yield opened


def of_files(count):
    """The first trials that take a package from a file."""
    return [number for number in range(2 * count) if number % supply.DOWNLOAD_EVERY][:count]


def test_packages_that_are_wrong_are_refused_whole(campaign):
    installed = refused = 0
    for number in of_files(60):
        outcome = campaign.trial(number, generator(3, number))
        assert outcome.findings == ()
        installed += outcome.counts["installed"]
        refused += outcome.counts["refused"]
    assert installed > 5
    assert refused > 25


def downloaded(campaign, kind, npm=False):
    place = campaign._folder / "one"
    place.mkdir()
    misbehaviour = {kind: supply.behaviours(campaign._data)[kind]}
    try:
        with pytest.MonkeyPatch.context() as patch, home(place / "deep" / "home"):
            patch.setattr(campaign, "_behaviours", misbehaviour)
            return campaign._download(campaign.resources[1], place, generator(3, 3), npm)
    finally:
        remove(place)


@pytest.mark.parametrize(
    ("kind", "installed"),
    [
        ("interrupted", 0),
        ("proxy", 0),
        ("redirected", 1),
        pytest.param("as published", 1, marks=pytest.mark.slow),
        pytest.param("a wrong hash", 0, marks=pytest.mark.slow),
        pytest.param("down", 0, marks=pytest.mark.slow),
        pytest.param("hangs", 0, marks=pytest.mark.slow),
        pytest.param("redirected, tampered", 0, marks=pytest.mark.slow),
    ],
)
def test_a_registry_that_misbehaves_installs_nothing_wrong(campaign, kind, installed):
    outcome = downloaded(campaign, kind)
    assert outcome.findings == ()
    assert outcome.counts["installed"] == installed


@pytest.mark.slow
@needs_npm
@pytest.mark.parametrize(("kind", "installed"), [("as published", 1), ("a wrong hash", 0)])
def test_so_it_is_with_npm(campaign, kind, installed):
    outcome = downloaded(campaign, kind, npm=True)
    assert outcome.findings == ()
    assert outcome.counts["installed"] == installed


@pytest.mark.parametrize("plant", supply.PLANTS)
def test_a_planted_defect_is_found(campaign, plant):
    with supply.planted(plant):
        for number in of_files(300):
            if campaign.trial(number, generator(3, number)).findings:
                return
    pytest.fail("three hundred trials did not find it")


def test_a_file_that_unpacks_without_end_is_stopped_before_the_disk_is_full(campaign, tmp_path):
    archive = tmp_path / "bomb.whl"
    archive.write_bytes(registry.wheel({supply.MEMBER: bytes(64 << 20)}))
    assert archive.stat().st_size < 1 << 17
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(SpaceError, match="not the file that was published"):
        install.take_out(campaign.resources[1].files, [archive], into)
    assert (into / "data.txt").stat().st_size <= install.MOST_BYTES + (1 << 20)
