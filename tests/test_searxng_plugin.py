"""The plug-in of SearXNG: in SearXNG's own host where it can be imported, else in a recorded one.

docs/searxng.md says how to run these tests with the real one.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import SimpleNamespace

import pytest
import searxng_host
from cover_cases import in_company

from sottovoce.ledger import Ledger, OtherCompanyError
from sottovoce.search import PrivateSearch

if importlib.util.find_spec("searx") is None:
    searxng_host.install()
plugins = importlib.import_module("searx.plugins")
SXNGPlugin = importlib.import_module("sottovoce.integrations.searxng_plugin").SXNGPlugin

QUERY = "treatment for skin cancer"
SECRET = "zebulonitis quartermaine"


class SmallPlugin(SXNGPlugin):
    space = "glove-840b-34k"


@pytest.fixture(scope="module")
def storage(default_space):
    """The host with the plug-in, which has drawn once and so has its space."""
    return host(SmallPlugin)


@pytest.fixture(autouse=True)
def ledger(monkeypatch, tmp_path, storage):
    (plugin,) = storage.plugin_list
    plugin._obfuscating()
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    return Ledger.open()


def host(kind):
    storage = plugins.PluginStorage()
    storage.register(kind(plugins.PluginCfg(active=True)))
    storage.init(None)
    return storage


class Search:
    """A search as a plug-in sees it; ``run`` is what the host does, and gives what engines get."""

    def __init__(self, query, bang=None):
        self.search_query = SimpleNamespace(query=query, external_bang=bang, pageno=1)
        self.user_plugins = ["sottovoce"]

    def run(self, storage):
        return self.search_query.query if storage.pre_search(None, self) else None


def test_engines_get_other_words_and_the_same_again_for_nothing(storage, ledger):
    first, again = Search(QUERY).run(storage), Search(QUERY).run(storage)
    assert first
    assert first != QUERY
    assert again == first
    assert ledger.spent()[0].nats == 7.5
    assert ledger.entries(1)[0].destination == "searxng"


def test_what_left_for_engines_is_refused_company(storage, ledger):
    assert Search(QUERY).run(storage)
    with pytest.raises(OtherCompanyError):
        ledger.charge(in_company(QUERY))


def test_a_spent_budget_stops_the_search_and_says_so(storage, ledger):
    ledger.set_budget(None, 7.5)
    assert Search(QUERY).run(storage)
    refused = Search("divorce lawyer")
    assert refused.run(storage) is None
    (plugin,) = storage.plugin_list
    (answer,) = plugin.post_search(None, refused)
    assert "0 are left" in answer.answer
    assert "divorce" not in answer.answer


@pytest.mark.parametrize("failing", ["exception", "ledger", "nothing", "bang", "two", "memory"])
def test_whatever_fails_no_engine_gets_anything(storage, ledger, monkeypatch, failing):
    search = Search(SECRET, bang="g" if failing == "bang" else None)
    if failing == "ledger":
        (ledger.folder / "ledger.db").write_bytes(b"damaged" * 1000)
    elif failing == "nothing":
        search = Search("")
    elif failing != "bang":

        def fails(*_, **__):
            if failing == "memory":
                raise MemoryError(SECRET)
            if failing == "exception":
                raise ValueError(SECRET)
            return SimpleNamespace(outgoing=SimpleNamespace(queries=("one", "two")))

        monkeypatch.setattr(PrivateSearch, "count", fails)
    assert search.run(storage) is None
    (plugin,) = storage.plugin_list
    (answer,) = plugin.post_search(None, search)
    assert "zebulonitis" not in answer.answer


def test_without_a_word_space_it_stays_and_stops_every_search(monkeypatch, tmp_path):
    class LostPlugin(SXNGPlugin):
        space = str(tmp_path / "nowhere")

    storage = host(LostPlugin)
    assert len(list(storage.plugin_list)) == 1
    assert Search(QUERY).run(storage) is None


def test_the_host_would_go_on_after_an_exception(storage):
    """Why the plug-in catches everything; if this fails, SearXNG has become safer."""

    class FrailPlugin(SXNGPlugin):
        def pre_search(self, request, search):
            raise ValueError

    assert Search(QUERY).run(host(FrailPlugin)) == QUERY
