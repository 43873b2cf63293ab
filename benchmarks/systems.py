"""The systems that are compared, and the environments that the peers get for themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class System:
    """Something that can take turns: a worker script and the interpreter to run it with."""

    name: str
    script: str
    python: str = sys.executable
    variables: dict[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """How to start a worker; its task is one more argument."""
        return [self.python, str(HERE / self.script)]

    def environment(self, threads: int) -> dict[str, str]:
        """The worker's variables: every library that counts threads gets the same number."""
        counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return (
            dict(os.environ)
            | dict.fromkeys(counts, str(threads))
            | {"PYTHONUTF8": "1"}
            | self.variables
        )


OURS = System("sottovoce", "worker_ours.py")
BASE = System("base install", "worker_ours.py", variables={"WITHOUT_FAST": "1"})
"""The same without the extra ``fast``."""
BOUND = System("sgemm bound", "worker_bound.py")


class NotInstalledError(Exception):
    """A peer cannot be had here; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A published package of the same kind, in the version that was looked at."""

    name: str
    requirement: str
    script: str

    def install(self, root: Path) -> System:
        """The peer in a virtual environment of its own, made the first time and reused later."""
        folder = root / f"{self.requirement.replace('==', '-')}-{sys.implementation.cache_tag}"
        python = folder / "bin" / "python"
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            root.mkdir(parents=True, exist_ok=True)
            log = root / f"{folder.name}.log"
            pip = [str(python), "-m", "pip", "install", "--quiet", self.requirement]
            with log.open("w") as output:
                for step in ([sys.executable, "-m", "venv", str(folder)], pip):
                    done = subprocess.run(
                        step, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False
                    )
                    if done.returncode:
                        print(f"{self.name}: the installation's log is {log}", file=sys.stderr)
                        raise NotInstalledError(f"could not be installed ({self.requirement})")
            (folder / "nltk_data").mkdir()
            complete.touch()
        # A peer downloads data as it is imported, into the first of these folders that exists.
        variables = {"NLTK_DATA": str(folder / "nltk_data")}
        return System(self.name, self.script, str(python), variables)


PEERS = (
    Peer("pyPANTERA", "pypantera==1.0.2", "worker_peer_pypantera.py"),
    Peer("mldp-text", "mldp-text==0.1.2", "worker_peer_mldp.py"),
)
