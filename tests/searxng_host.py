"""What SearXNG does with a plug-in, as far as it concerns one, where SearXNG itself is not here.

Recorded from SearXNG of August 2026: what a plug-in is made of and called with, that a False of
``init`` removes it, and that an exception in ``pre_search`` is logged, and the search goes on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any


@dataclass
class PluginInfo:
    id: str
    name: str
    description: str
    preference_section: str | None = "general"
    examples: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)


class Plugin:
    id = ""

    def __init__(self, plg_cfg: Any) -> None:
        self.active = plg_cfg.active


@dataclass(frozen=True)
class Answer:
    answer: str


class Storage:
    """Plug-ins, and what the host does with them."""

    def __init__(self) -> None:
        self.plugin_list: list[Any] = []

    def register(self, plugin: Any) -> None:
        self.plugin_list.append(plugin)

    def init(self, app: Any) -> None:
        self.plugin_list = [plugin for plugin in self.plugin_list if plugin.init(app)]

    def pre_search(self, request: Any, search: Any) -> bool:
        goes_on = True
        for plugin in self.plugin_list:
            try:
                goes_on = bool(plugin.pre_search(request=request, search=search))
            except Exception:
                continue
            if not goes_on:
                break
        return goes_on


def install() -> None:
    """Let ``import searx.plugins`` find this."""
    packages = {name: ModuleType(name) for name in ("searx", "searx.plugins", "searx.result_types")}
    packages["searx.plugins"].__dict__.update(
        Plugin=Plugin,
        PluginInfo=PluginInfo,
        PluginStorage=Storage,
        PluginCfg=lambda active: SimpleNamespace(active=active),
    )
    packages["searx.result_types"].__dict__.update(Answer=Answer)
    sys.modules.update(packages)
