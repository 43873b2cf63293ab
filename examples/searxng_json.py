"""Ask `sottovoce serve --searxng-json` as programs ask SearXNG: by a form, so in no address.

sottovoce serve --searxng-json
python examples/searxng_json.py "treatment for skin cancer"
"""

from __future__ import annotations

import json
import sys
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from sottovoce.paths import data_folder


def main(query: str) -> None:
    """Print the titles of what is found; the running service says where it is, and its token."""
    service = json.loads((data_folder() / "serve.json").read_text())
    request = Request(
        f"http://127.0.0.1:{service['port']}/search",
        urlencode({"q": query, "format": "json"}).encode(),
        {"Authorization": f"Bearer {service['token']}"},
    )
    with urlopen(request) as answer:  # noqa: S310 - on this machine
        for result in json.load(answer)["results"]:
            print(f"{result['title']}  ({result['url']})")


if __name__ == "__main__":
    main(sys.argv[1])
