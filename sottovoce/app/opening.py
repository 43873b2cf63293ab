"""How a browser is brought to the page: by a file that nobody else can read.

Every user of a machine reads the command lines of all, and that of a browser holds the address that
it opens. So it opens a file of ours, which leads on to an address that works once.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from html import escape
from pathlib import Path
from threading import Lock

from sottovoce.errors import SottovoceError
from sottovoce.files import create_new
from sottovoce.paths import data_folder

NAME = "open.html"
_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    "<title>sottovoce</title>"
    '<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">sottovoce</a>\n'
)


class Opening:
    """One code, good for once, and the file that holds it until then."""

    def __init__(self, base: str) -> None:
        self._base, self._lock = base, Lock()
        self._code: str | None = None
        self._folder: Path | None = None

    def address(self) -> str:
        """An address that brings one browser, once, to the page with its token."""
        with self._lock:
            self._code = secrets.token_urlsafe(18)
            return f"{self._base}/open/{self._code}"

    def write_file(self) -> str:
        """Write a file that leads to such an address; the file's own address gives nothing away."""
        page = _PAGE.format(address=escape(self.address()))
        try:
            parent = data_folder()
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=".opening-", dir=parent.resolve()))  # mode 0700
            self._folder = folder
            with create_new(folder / NAME) as file:
                file.write(page.encode())
        except OSError as error:
            self.close()
            raise SottovoceError(
                f"the browser was not opened, since a private file could not be written "
                f"({type(error).__name__}): open the printed address yourself"
            ) from None
        return (folder / NAME).as_uri()

    def use(self, code: str) -> bool:
        """Whether this is the code; the right one is used up, and its file removed."""
        with self._lock:
            expected = self._code
            if expected is None or not secrets.compare_digest(code.encode(), expected.encode()):
                return False
            self._code = None
        self._remove()
        return True

    def close(self) -> None:
        """The code is good no more, and the file goes."""
        with self._lock:
            self._code = None
        self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
