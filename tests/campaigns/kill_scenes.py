"""What is killed: some work in a folder, what must hold at any moment, and what when it is done."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cluster_data import WORDS, make_space, sanitizer, write_rows
from frail_runner import FrailRunner, frail_plan
from ledger_children import entry, nats, send

from sottovoce.collections import Document, load_collection
from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.engines.stored import StoredBM25, StoredDense, make_index
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.executors import in_this_process
from sottovoce.experiments.run import staged, work_through
from sottovoce.experiments.store import Store
from sottovoce.ledger import BudgetError, Ledger, database, network
from sottovoce.pool_making import make_pool
from sottovoce.pool_store import made_pools, map_vectors, pool_facts, read_stored
from sottovoce.resources import install
from sottovoce.resources.catalogue import WORD_SPACE, Conversion, PackagedFile, Resource
from sottovoce.sanitizing import open_source, sanitize_file
from sottovoce.spaces.formats import import_vectors
from sottovoce.spaces.space import WordSpace

HOME = "SOTTOVOCE_HOME"


class Scene(Protocol):
    """Work that may be killed anywhere, and typed again."""

    name: str
    processes: int
    """How many do it at the same time."""
    endless: bool
    """Whether it goes on until it is killed."""

    def prepare(self, place: Path) -> None:
        """What is there before."""

    def work(self, place: Path, who: int) -> None:
        """All of it; what is done already is not done again."""

    def at_any_moment(self, place: Path) -> Iterator[str]:
        """What is wrong after a kill."""

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        """What is wrong at the end; ``tidy``: nothing is left of what was killed."""


@contextmanager
def home(place: Path) -> Iterator[None]:
    """Everything that sottovoce keeps is in this folder."""
    before = os.environ.get(HOME)
    os.environ[HOME] = str(place)
    try:
        yield
    finally:
        os.environ.pop(HOME) if before is None else os.environ.update({HOME: before})


def content(folder: Path) -> dict[str, bytes]:
    """All files under a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def open_to_others(folder: Path, known: set[str]) -> Iterator[str]:
    """Unfinished files that another user of the machine could read."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in known and path.stat().st_mode & 0o077:
            above = [parent for parent in path.parents if parent.is_relative_to(folder)]
            if all(parent.stat().st_mode & 0o077 for parent in above if parent != folder):
                yield f"an unfinished file can be read by others ({path.suffix or 'no ending'})"


class SanitizeScene:
    """A file of rows, sanitized with a seed; after a kill, gone on with."""

    processes, endless = 1, False

    def __init__(self, setup: Path, ending: str) -> None:
        self.name = f"sanitize {ending}"
        self._space = make_space(setup / f"space-{ending}")
        self._source = write_rows(setup / f"in.{ending}", 320)
        self._out = f"out.{ending}"
        (setup / f"whole-{ending}").mkdir()
        self.work(setup / f"whole-{ending}", 0)
        self._whole = content(setup / f"whole-{ending}")

    def prepare(self, place: Path) -> None:
        place.mkdir()

    def work(self, place: Path, who: int) -> None:
        out = place / self._out
        source = open_source(self._source, ("text",))
        try:
            sanitize_file(sanitizer(self._space), source, out, report=place / "report", resume=True)
        except UsageError as error:
            if "finished earlier" not in str(error):
                raise

    def at_any_moment(self, place: Path) -> Iterator[str]:
        # A report counts rows, and has no text.
        yield from open_to_others(place, {self._out, "report", ".report.growing"})
        for name in (self._out, "report"):
            if (place / name).exists() and (place / name).read_bytes() != self._whole[name]:
                yield f"{name} is there, and not whole"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        done = content(place)
        for name, data in self._whole.items():
            if done.get(name) != data:
                yield f"{name} is not that of an undisturbed run"


class ExperimentScene:
    """The cells and tables of an experiment."""

    name, processes, endless = "experiment run", 1, False

    def __init__(self, setup: Path) -> None:
        self.work(setup / "experiment", 0)
        self._whole = self._tables(setup / "experiment")

    def _tables(self, place: Path) -> dict[str, bytes]:
        """Tables and runs; a cell's file also says how long it took."""
        return {
            name: data
            for name, data in content(place).items()
            if not name.startswith(("cells", "variants", "."))
        }

    def prepare(self, place: Path) -> None:
        place.mkdir()

    def work(self, place: Path, who: int) -> None:
        store, runner = Store(place), FrailRunner(place)
        cells = staged(runner, frail_plan("a", seeds=(0,)))
        with store.alone():
            work_through(store, cells, partial(in_this_process, runner))
            store.assemble([cell for stage in cells for cell in stage])

    def at_any_moment(self, place: Path) -> Iterator[str]:
        yield from ()

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        if self._tables(place) != self._whole:
            yield "cells or tables are not those of an undisturbed run"


def vectors_text(seed: int, words: int = 400) -> bytes:
    """A file of word vectors."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((words, 8)).round(4)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, rows, strict=False)]
    return ("\n".join(lines) + "\n").encode()


def small_resource(setup: Path, registry: Any = "npm") -> tuple[Resource, bytes]:
    """A word space as the catalogue lists them, and the file that it is made of."""
    import hashlib

    data = vectors_text(5)
    file, made = setup / "resource.txt", setup / "resource-space"
    file.write_bytes(data)
    import_vectors(file, made, name="expected", format="glove")
    sha256 = WordSpace.open(made).sha256
    packaged = PackagedFile(
        registry, "sottovoce-no-such", "1.0.0", "package/data.txt", hashlib.sha256(data).hexdigest()
    )
    resource = Resource(
        name="campaign-words",
        kind=WORD_SPACE,
        about="made up",
        licence="none needed",
        words=400,
        dimension=8,
        files=(packaged,),
        conversion=Conversion("glove", sha256),
    )
    return resource, data


class AddScene:
    """A word space added from a package that was downloaded elsewhere."""

    name, processes, endless = "spaces add", 2, False

    def __init__(self, setup: Path) -> None:
        self._resource, data = small_resource(setup)
        self._archive = setup / "package.tgz"
        with tarfile.open(self._archive, "w:gz") as tarball:
            member = tarfile.TarInfo("package/data.txt")
            member.size = len(data)
            tarball.addfile(member, io.BytesIO(data))

    def prepare(self, place: Path) -> None:
        place.mkdir()

    def work(self, place: Path, who: int) -> None:
        with home(place):
            install.add(self._resource, archives=[self._archive])

    def at_any_moment(self, place: Path) -> Iterator[str]:
        with home(place):
            if self._resource.folder.exists() and not install.intact(self._resource):
                yield "half a word space is in place"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        with home(place):
            if not install.intact(self._resource):
                yield "the word space is not there"
            left = set(os.listdir(place / "spaces")) - {self._resource.name}
            if tidy and left:
                yield f"{len(left)} folders of killed processes were left"


class ReplaceScene:
    """A word space of one's own is replaced by another one."""

    name, processes, endless = "spaces import --replace", 1, False

    def __init__(self, setup: Path) -> None:
        self._files = [setup / "old-vectors.txt", setup / "new-vectors.txt"]
        self._hashes = []
        for number, file in enumerate(self._files):
            file.write_bytes(vectors_text(number))
            import_vectors(file, setup / f"replace-{number}", name="mine", format="glove")
            self._hashes.append(WordSpace.open(setup / f"replace-{number}").sha256)

    def prepare(self, place: Path) -> None:
        place.mkdir()
        with home(place):
            install.import_file(self._files[0], name="mine", format="glove")

    def work(self, place: Path, who: int) -> None:
        with home(place):
            install.import_file(self._files[1], name="mine", format="glove", replace=True)

    def at_any_moment(self, place: Path) -> Iterator[str]:
        try:
            if install._content_hash(place / "spaces" / "mine") not in self._hashes:
                yield "the word space is neither the old nor the new one"
        except SottovoceError:
            yield "neither the old nor the new word space can be opened"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        if install._content_hash(place / "spaces" / "mine") != self._hashes[1]:
            yield "the new word space is not there"


class PoolScene:
    """A pool is replaced by another one, with its vectors."""

    name, processes, endless = "pools make --replace", 1, False

    def __init__(self, setup: Path, encoder: Encoder) -> None:
        self._encoder = encoder
        self._sources = [setup / "old-strings.txt", setup / "new-strings.txt"]
        self._expected = []
        for number, file in enumerate(self._sources):
            texts = [f"public string {'x' * number} {row}" for row in range(60 + number)]
            file.write_text("".join(f"{text}\n" for text in texts))
            with home(setup / f"pool-{number}"):
                make_pool("mine", [str(file)], encoder)
                self._expected.append(self._read())

    def _read(self) -> tuple[tuple[str, ...], bytes]:
        facts = pool_facts("mine")
        return read_stored(facts)[0], map_vectors(facts).tobytes()

    def prepare(self, place: Path) -> None:
        with home(place):
            make_pool("mine", [str(self._sources[0])], self._encoder)

    def work(self, place: Path, who: int) -> None:
        with home(place):
            make_pool("mine", [str(self._sources[1])], self._encoder, replace=True)

    def at_any_moment(self, place: Path) -> Iterator[str]:
        with home(place):
            try:
                if made_pools() != ["mine"] or self._read() not in self._expected:
                    yield "the pool is neither the old nor the new one"
            except SottovoceError:
                yield "neither the old nor the new pool can be opened"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        with home(place):
            if self._read() != self._expected[1]:
                yield "the new pool is not there"


class IndexScene:
    """An index on disk, with vectors; a folder may hold what another collection's index left."""

    name, processes, endless = "index", 1, False

    def __init__(self, setup: Path) -> None:
        demo = load_collection("demo").documents
        self._documents = demo[:80]
        self._others = [Document(d.doc_id, d.text[:40], d.title) for d in self._documents]
        self._whole_folder = setup / "index"
        self.work(self._whole_folder, 0)
        self._whole = content(self._whole_folder)
        self._answers = self._ask(self._whole_folder)

    def _ask(self, folder: Path) -> list[Any]:
        queries = ["skin cancer", "tax return"]
        return [engine(folder).search(queries, 5) for engine in (StoredBM25, StoredDense)]

    def prepare(self, place: Path) -> None:
        """An index of other documents was begun here, and killed when its vectors were there."""
        make_index(self._others, place, encoder="light")
        (place / "index.json").unlink()

    def work(self, place: Path, who: int) -> None:
        if not (place / "index.json").exists():
            make_index(self._documents, place, encoder="light")

    def at_any_moment(self, place: Path) -> Iterator[str]:
        try:
            answers = self._ask(place)
        except SottovoceError:
            return
        if answers != self._answers:
            yield "half an index answers"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        done = {name: data for name, data in content(place).items() if name[0] != "."}
        if done != self._whole:
            yield "the index is not that of an undisturbed run"


class LedgerScene:
    """Two processes count and send, over and over, under a budget that they share."""

    processes, endless = 2, True
    budget = 400.0

    def __init__(self, *, on_network: bool) -> None:
        self.name = "ledger on a network folder" if on_network else "ledger"
        self._on_network = on_network
        self.charge_first = True

    def prepare(self, place: Path) -> None:
        place.mkdir()
        mounts = network.MOUNTS
        if self._on_network:
            network.MOUNTS = place / "mounts"
            network.MOUNTS.write_text(f"1 1 0:1 / {place} rw - nfs4 far:/ rw\n")
        try:
            Ledger.open(place / "ledger").set_budget(None, self.budget)
        finally:
            network.MOUNTS = mounts

    def work(self, place: Path, who: int) -> None:
        ledger = Ledger.open(place / "ledger", wait=30)
        while True:
            try:
                if not self.charge_first:
                    send("x", place / f"sent-{who}")
                ledger.charge(entry(releases=1))
            except BudgetError:
                return
            if self.charge_first:
                send("x", place / f"sent-{who}")

    def sent(self, place: Path) -> int:
        """How often something left."""
        return sum(file.read_text().count("x\n") for file in place.glob("sent-*"))

    def at_any_moment(self, place: Path) -> Iterator[str]:
        try:
            ledger = Ledger.open(place / "ledger", create=False, wait=30)
            counted, spent = ledger.check(), nats(ledger)
        except SottovoceError as error:
            yield f"the ledger cannot be used ({type(error).__name__})"
            return
        if self.sent(place) > counted:
            yield "something was sent that is not counted"
        if spent != counted or spent > self.budget:
            yield "the budget was exceeded, or the sum is wrong"
        if database.exists(place / "ledger") and not ledger.anchored and counted > 2:
            yield "an older copy would not be noticed"

    def when_done(self, place: Path, *, tidy: bool = True) -> Iterator[str]:
        yield from self.at_any_moment(place)


def all_scenes(setup: Path) -> list[Scene]:
    """Every kind of work, each with what an undisturbed run of it gives."""
    setup.mkdir()
    return [
        SanitizeScene(setup, "csv"),
        LedgerScene(on_network=False),
        ExperimentScene(setup),
        AddScene(setup),
        IndexScene(setup),
        SanitizeScene(setup, "jsonl"),
        LedgerScene(on_network=True),
        ReplaceScene(setup),
        PoolScene(setup, load_encoder("light")),
        SanitizeScene(setup, "parquet"),
    ]


def remove(place: Path) -> None:
    """Remove what a trial left."""
    shutil.rmtree(place, ignore_errors=True)
