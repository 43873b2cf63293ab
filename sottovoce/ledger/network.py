"""Whether a folder lies on another machine: there SQLite's write-ahead log cannot be used.

Its index is memory that processes share, and two machines share none.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = re.compile(
    r"nfs\d*|cifs|smb\w*|9p|afs|ceph|lustre|glusterfs|ncpfs|fuse\.\w*(ssh|gluster|s3|dav|rclone)\w*"
)
"""Names of file systems whose files are elsewhere."""
ESCAPE = re.compile(r"\\([0-7]{3})")


def file_system(folder: Path) -> str | None:
    """The name of the network file system that a folder is on; None: this machine's, or unknown."""
    place = folder.absolute()
    nearest, name = -1, ""
    with suppress(OSError):
        for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
            mount, _, kind = line.partition(" - ")
            if len(fields := mount.split()) < 5:
                continue
            root = Path(ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[4]))
            # A later line covers an earlier one of the same place.
            if place.is_relative_to(root) and len(root.parts) >= nearest:
                nearest, name = len(root.parts), kind.split(" ", 1)[0]
    return name if NETWORK.fullmatch(name) else None
