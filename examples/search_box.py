"""Switch the browser's search box on, without the page, and print the address for it.

sottovoce serve
python examples/search_box.py
"""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

from sottovoce.paths import data_folder


def main() -> None:
    """Ask the running service for the address; it holds a key, so show it to nobody."""
    service = json.loads((data_folder() / "serve.json").read_text())
    request = Request(
        f"http://127.0.0.1:{service['port']}/v1/search-box",
        b'{"on": true}',
        {"X-Sottovoce-Token": service["token"], "Content-Type": "application/json"},
        method="PUT",
    )
    with urlopen(request) as answer:  # noqa: S310 - on this machine
        print(json.load(answer)["address"])


if __name__ == "__main__":
    main()
