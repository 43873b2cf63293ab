"""The browser's own search box as a door: a key that only this person's browser knows.

The browser keeps the key in the address of the search engine that it was given. A page of another
site does not know it, so it cannot make this browser search; another user of the machine cannot
read it. It opens the service as the token does, and lasts until it is switched off.

Firefox posts the query as a form; the answer leads to the page with a code that is good for once.
Chromium takes no engine that wants a form: there the query is in the fragment of the address,
which no browser sends, and the page takes it out.
"""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Literal
from xml.sax.saxutils import quoteattr

from typing_extensions import TypedDict

from sottovoce.errors import SottovoceError
from sottovoce.files import write_whole
from sottovoce.paths import data_folder

Kind = Literal["form", "fragment"]
LIFETIME, MOST = 60.0, 20
"""Seconds that a query waits for its page, and how many wait."""
ICON = Path(__file__).with_name("page") / "icon.svg"
DESCRIPTION_TYPE = "application/opensearchdescription+xml"
_DESCRIPTION = """\
<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>sottovoce</ShortName>
  <Description>Search in a low voice, through your own machine</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Image width="16" height="16" type="image/svg+xml">data:image/svg+xml;base64,{icon}</Image>
  {url}
</OpenSearchDescription>
"""


class SearchBoxState(TypedDict):
    """Whether browsers may search here; the address for them, and where it is described."""

    on: bool
    address: str | None
    fragment: str | None
    form: str | None


class SearchBox:
    """The key, in a file that only the user can read. There is none while the box is off."""

    def __init__(
        self,
        base: str,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base = base
        self.file = data_folder() / "search-box.key" if file is None else file
        self._clock, self._lock = clock, Lock()
        self._asked: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def key(self) -> str | None:
        """The key, if the box is on."""
        try:
            return self.file.read_text("ascii") or None
        except (OSError, UnicodeDecodeError):
            return None

    def opens(self, key: str | bytes) -> bool:
        """Whether this is the key."""
        given, expected = key if isinstance(key, bytes) else key.encode(), self.key()
        return expected is not None and secrets.compare_digest(given, expected.encode())

    def state(self) -> SearchBoxState:
        """What the page shows."""
        key = self.key()
        if key is None:
            return {"on": False, "address": None, "fragment": None, "form": None}
        return {
            "on": True,
            "address": f"{self.base}/ask#key={key}&q=%s",
            "fragment": f"/opensearch/{key}/fragment.xml",
            "form": f"/opensearch/{key}/form.xml",
        }

    def switch(self, on: bool) -> None:
        """Make a key, or remove it: what browsers have kept of it then opens nothing."""
        try:
            if not on:
                self.file.unlink(missing_ok=True)
            elif self.key() is None:
                self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(self.file, secrets.token_urlsafe(24).encode(), 0o600)
        except OSError as error:
            raise SottovoceError(
                f"the key of the search box cannot be written ({type(error).__name__}): make room "
                "in the data folder"
            ) from None

    def description(self, key: str, kind: Kind) -> str:
        """The document by which a browser adds the engine. It offers no suggestions."""
        if kind == "form":
            template = quoteattr(f"{self.base}/ask/{key}")
            parameter = '<Param name="q" value="{searchTerms}"/>'
            url = f'<Url type="text/html" method="post" template={template}>{parameter}</Url>'
        else:
            template = quoteattr(f"{self.base}/ask#key={key}&q={{searchTerms}}")
            url = f'<Url type="text/html" method="get" template={template}/>'
        return _DESCRIPTION.format(icon=b64encode(ICON.read_bytes()).decode(), url=url)

    def keep(self, query: str) -> str:
        """Keep a query for the page that is about to open; the code by which it asks for it."""
        code, now = secrets.token_urlsafe(18), self._clock()
        with self._lock:
            self._forget_old(now)
            while len(self._asked) >= MOST:
                self._asked.popitem(last=False)
            self._asked[code] = (query, now + LIFETIME)
        return code

    def take(self, code: str) -> str | None:
        """The query that was kept under a code, once."""
        with self._lock:
            self._forget_old(self._clock())
            query, _ = self._asked.pop(code, (None, 0.0))
        return query

    def _forget_old(self, now: float) -> None:
        while self._asked and next(iter(self._asked.values()))[1] <= now:
            self._asked.popitem(last=False)
