"""Supply: packages that are not what they should be, and registries that misbehave.

``spaces add`` gets its packages over real sockets from a registry on this machine, by pip and npm
as always, or from a file given with ``--archive``. Whatever comes, the resource is then installed
as pinned, or not at all; the error says what to do; nothing is left, and nothing is written
anywhere else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from campaigns import registry
from campaigns.frame import Outcome
from campaigns.kill_scenes import home, remove, small_resource
from campaigns.registry import Behaviour, Registry, serving
from sottovoce.errors import SottovoceError
from sottovoce.resources import install
from sottovoce.resources.catalogue import Resource

PLANTS = {
    "hash-ignored": "the hash of a file is not compared with the pinned one",
    "names-believed": "files are written under the names that the archive gives them",
    "scratch-left": "what was downloaded stays when it is refused",
    "raw-errors": "errors of readers reach the user as they are",
}
MEMBER = "package/data.txt"
ADVICE = ("download it again", "download the package again", "--archive", "Please report")
"""An error says one of these."""
PASSWORD = "hunter2"
"""Of the registry or the proxy: people have it in an address."""
DOWNLOAD_EVERY, NPM_EVERY = 25, 100
"""Trials between two that use a registry; npm is slow."""
MOST, MOST_BEFORE = 1 << 20, 1 << 22
"""What a file, and a tarball before it, may unpack to; real ones are larger."""


class Supply:
    """One trial: one package, offered in one way."""

    unit = "packages"

    def __init__(self, folder: Path, registries: tuple[Registry, Registry]) -> None:
        self._folder, (self._registry, self._other) = folder, registries
        (folder / "setup").mkdir(parents=True)
        resource, self._data = small_resource(folder / "setup", "PyPI")
        # One is converted, and its space has a hash, too; the other one's files are kept as is.
        as_it_is = replace(resource, name="campaign-list", kind="word list", conversion=None)
        self.resources = (resource, as_it_is)
        self._archives = archives(self._data)
        self._behaviours = behaviours(self._data)

    def trial(self, number: int, rng: np.random.Generator) -> Outcome:
        place = self._folder / f"trial-{number}"
        place.mkdir()
        resource = self.resources[number % 2]
        try:
            with home(place / "deep" / "home"):
                if number % DOWNLOAD_EVERY == 0:
                    npm = number % NPM_EVERY == 0 and shutil.which("npm") is not None
                    return self._download(resource, place, rng, npm)
                return self._archive(resource, place, rng)
        finally:
            remove(place)

    def _archive(self, resource: Resource, place: Path, rng: np.random.Generator) -> Outcome:
        kinds = [*self._archives]
        kind = kinds[int(rng.integers(len(kinds)))]
        may_be_right, make = self._archives[kind]
        file = place / ("package.whl" if rng.random() < 0.5 else "package.tgz")
        file.write_bytes(make(rng))
        return self._added(resource, place, kind, may_be_right, [file])

    def _download(
        self, resource: Resource, place: Path, rng: np.random.Generator, npm: bool
    ) -> Outcome:
        kinds = [*self._behaviours]
        kind = kinds[int(rng.integers(len(kinds)))]
        may_be_right, make = self._behaviours[kind]
        package = registry.plain if npm else registry.wheel
        behaviour = make(rng, package)
        through = "npm" if npm else "pip"
        if npm:
            files = tuple(replace(file, registry="npm") for file in resource.files)
            resource = replace(resource, files=files)
        self._registry.behaviour = behaviour
        self._other.behaviour = replace(behaviour, elsewhere=None, asked=[])
        if behaviour.elsewhere is not None:
            behaviour.elsewhere = self._other.address
        with environment(self._settings(kind)):
            outcome = self._added(resource, place, f"{through}: {kind}", may_be_right, [])
        if kind == "proxy" and not behaviour.asked:
            return replace(outcome, findings=(*outcome.findings, "the proxy was not used"))
        return outcome

    def _settings(self, kind: str) -> dict[str, str]:
        """What pip and npm read from the environment."""
        address = self._registry.address
        proxy = ""
        if kind == "down":
            address = "http://127.0.0.1:9"  # Nobody listens there.
        if kind.startswith("proxy"):
            address = "http://registry.invalid"
            proxy = self._registry.address if kind == "proxy" else "http://127.0.0.1:9"
            proxy = proxy.replace("//", f"//somebody:{PASSWORD}@")
        else:
            address = address.replace("//", f"//somebody:{PASSWORD}@")
        return {
            "PIP_INDEX_URL": f"{address}/simple",
            "PIP_TRUSTED_HOST": "registry.invalid",
            "npm_config_registry": f"{address}/",
            "npm_config_fetch_retries": "0",
            "npm_config_fetch_timeout": "1000",
            "HTTP_PROXY": proxy,
            "http_proxy": proxy,
            "npm_config_proxy": proxy or "null",
        }

    def _added(
        self, resource: Resource, place: Path, kind: str, may_be_right: bool, files: list[Path]
    ) -> Outcome:
        counts: Counter[str] = Counter({"packages": 1, kind: 1})
        findings = []
        before = everything(place)
        try:
            install.add(resource, archives=files)
        except SottovoceError as error:
            counts["refused"] += 1
            message = str(error)
            if not any(advice in message for advice in ADVICE):
                findings.append(f"{kind}: the error does not say what to do")
            if PASSWORD in message:
                findings.append(f"{kind}: the error repeats a password")
            if new := everything(place) - before - {"deep", "deep/home", "deep/home/spaces"}:
                findings.append(f"{kind}: refused, and {len(new)} files are left")
        except Exception as error:
            findings.append(f"{kind}: an error of another kind ({type(error).__name__})")
        else:
            counts["installed"] += 1
            if not may_be_right:
                findings.append(f"{kind}: it was installed")
            elif not install.intact(resource):
                findings.append(f"{kind}: installed, and not as pinned")
            if resource.conversion is None:
                wrong = any(
                    hashlib.sha256((resource.folder / file.name).read_bytes()).hexdigest()
                    != file.sha256
                    for file in resource.files
                )
                findings += [f"{kind}: another file than the pinned one is there"] if wrong else []
            inside = str(resource.folder.relative_to(place))
            new = {name for name in everything(place) - before if not inside.startswith(name)}
            if any(not name.startswith(inside) for name in new):
                findings.append(f"{kind}: something was written elsewhere")
        return Outcome(counts, tuple(findings))


def everything(folder: Path) -> set[str]:
    """The names of all files and folders under this one."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


Archive = tuple[bool, Callable[[np.random.Generator], bytes]]


def archives(data: bytes) -> dict[str, Archive]:
    """Packages by what is wrong with them, and whether one may be right after all."""
    right = {MEMBER: data, "package/other.txt": b"other" * 100}
    packed = [registry.wheel(right), registry.wheel(right, compression=zipfile.ZIP_STORED)]
    packed += [registry.wheel(right, compression=zipfile.ZIP_LZMA)]
    packed += [registry.wheel(right, compression=zipfile.ZIP_BZIP2), registry.plain(right)]

    def one(rng: np.random.Generator) -> bytes:
        return packed[int(rng.integers(len(packed)))]

    def flipped(rng: np.random.Generator) -> bytes:
        content = bytearray(one(rng))
        for _ in range(int(rng.integers(1, 4))):
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        return bytes(content)

    def cut(rng: np.random.Generator) -> bytes:
        content = one(rng)
        return content[: int(rng.integers(len(content)))]

    def tampered(rng: np.random.Generator) -> bytes:
        pack = registry.wheel if rng.random() < 0.5 else registry.plain
        return pack({MEMBER: changed(data, rng)})

    def twice(rng: np.random.Generator) -> bytes:
        wrong = ("package/data.txt", changed(data, rng), tarfile.REGTYPE, "")
        good = (MEMBER, data, tarfile.REGTYPE, "")
        return registry.tarball(*((wrong, good) if rng.random() < 0.5 else (good, wrong)))

    def elsewhere(rng: np.random.Generator) -> bytes:
        names = ["../evil", "../../../evil", "/tmp/sottovoce-evil", "package/../../evil"]
        return registry.plain({names[int(rng.integers(4))]: b"evil", MEMBER: data})

    def linked(rng: np.random.Generator) -> bytes:
        if rng.random() < 0.3:
            return registry.linked_wheel(MEMBER, "/etc/passwd")
        kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
        kind = kinds[int(rng.integers(4))]
        return registry.tarball((MEMBER, None, kind, "/etc/passwd"))

    def link_above(rng: np.random.Generator) -> bytes:
        return registry.tarball(
            ("package", None, tarfile.SYMTYPE, "/tmp"), (MEMBER, data, tarfile.REGTYPE, "")
        )

    def bomb(rng: np.random.Generator) -> bytes:
        zeros = bytes(MOST + int(rng.integers(1, MOST)))
        return (registry.wheel if rng.random() < 0.5 else registry.plain)({MEMBER: zeros})

    def bomb_before(rng: np.random.Generator) -> bytes:
        return registry.plain({"package/zeros": bytes(MOST_BEFORE + 1), MEMBER: data})

    return {
        "as published": (True, one),
        "bits flipped": (True, flipped),
        "cut off": (True, cut),
        "tampered": (False, tampered),
        "the file twice": (True, twice),
        "names that lead out": (True, elsewhere),
        "links and devices": (False, linked),
        "a link above the file": (True, link_above),
        "a bomb": (False, bomb),
        "a bomb before the file": (False, bomb_before),
        "announced too large": (
            False,
            lambda rng: registry.announced_too_large(MEMBER, int(rng.integers(6, 1 << 40))),
        ),
        "noise": (False, lambda rng: rng.bytes(int(rng.integers(0, 5000)))),
        "another package": (False, lambda rng: registry.wheel({"package/else.txt": data})),
    }


def changed(data: bytes, rng: np.random.Generator) -> bytes:
    """The data with another digit somewhere."""
    content = bytearray(data)
    places = [at for at in range(len(content)) if chr(content[at]).isdigit()]
    at = places[int(rng.integers(len(places)))]
    content[at] = ord("0") + (content[at] - ord("0") + 1) % 10
    return bytes(content)


Misbehaviour = tuple[bool, Callable[[np.random.Generator, Callable[..., bytes]], Behaviour]]


def behaviours(data: bytes) -> dict[str, Misbehaviour]:
    """Registries by what they do, and whether something right may come of it."""
    right = {MEMBER: data}

    def interrupted(rng: np.random.Generator, pack: Callable[..., bytes]) -> Behaviour:
        package = pack(right)
        cut = int(rng.integers(len(package)))
        return Behaviour(package, cut=cut, short=bool(rng.random() < 0.5))

    return {
        "as published": (True, lambda rng, pack: Behaviour(pack(right))),
        "tampered": (False, lambda rng, pack: Behaviour(pack({MEMBER: changed(data, rng)}))),
        "a wrong hash": (False, lambda rng, pack: Behaviour(pack(right), sha256="0" * 64)),
        "interrupted": (False, interrupted),
        "down": (False, lambda rng, pack: Behaviour()),
        "hangs": (False, lambda rng, pack: Behaviour(hangs=True)),
        "errors": (
            False,
            lambda rng, pack: Behaviour(status=int(rng.choice([401, 403, 404, 410, 500, 503]))),
        ),
        "redirected": (True, lambda rng, pack: Behaviour(pack(right), elsewhere="")),
        "redirected, tampered": (
            False,
            lambda rng, pack: Behaviour(pack({MEMBER: changed(data, rng)}), elsewhere=""),
        ),
        "proxy": (False, lambda rng, pack: Behaviour(pack({MEMBER: changed(data, rng)}))),
        "proxy that is down": (False, lambda rng, pack: Behaviour(pack(right))),
    }


@contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    """Settings of pip, npm and proxies, and none of those of this machine."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().startswith(("pip_", "npm_config"))
        and not name.lower().endswith("_proxy")
    }
    common = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "PIP_TIMEOUT": "1",
        "PIP_NO_INPUT": "1",
    }
    with patch.dict(os.environ, {**clean, **common, **settings}, clear=True):
        yield


# Defects


@contextmanager
def planted(plant: str | None) -> Iterator[None]:
    """Break something, for as long as it takes to see that it is noticed."""
    with ExitStack() as stack:

        def replace_by(name: str, function: Callable[..., Any]) -> None:
            stack.enter_context(patch.object(install, name, function))

        if plant == "hash-ignored":

            def copy(source: Any, file: Any, archive: Path, into: Path) -> None:
                (into / file.name).write_bytes(source.read())

            replace_by("_copy", copy)
        if plant == "names-believed":
            members = install._members

            def written(archive: Path) -> Iterator[tuple[str, Any]]:
                for name, source in members(archive):
                    target = Path(os.environ["SOTTOVOCE_HOME"]) / name
                    if "evil" in name and "tmp" not in name:
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(b"evil")
                    yield name, source

            replace_by("_members", written)
        if plant == "scratch-left":

            @contextmanager
            def kept(folder: Path, prefix: str) -> Iterator[Path]:
                (folder / f"{prefix}kept").mkdir(parents=True)
                yield folder / f"{prefix}kept"

            replace_by("scratch_folder", kept)
        if plant == "raw-errors":
            replace_by("UNREADABLE", (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile))
        yield


@contextmanager
def opened(folder: Path, plant: str | None = None) -> Iterator[Supply]:
    """The campaign with its registries."""
    with (
        serving() as one,
        serving() as other,
        patch.object(install, "MOST_BYTES", MOST),
        patch.object(install, "MOST_BYTES_BEFORE", MOST_BEFORE),
        planted(plant),
    ):
        yield Supply(folder / "supply", (one, other))
