"""The API server. ``async with instar.server.running() as server: server.kubeconfig``.

``RunningServer``, ``Settings`` and ``running`` are public API. They are loaded on first use,
because every import of a module below this package runs this file, and most of those modules need
no whole server.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instar.server.lifecycle.lifetime import RunningServer, running
    from instar.server.settings import Settings

__all__ = ["RunningServer", "Settings", "running"]

_MODULES = {
    "RunningServer": "instar.server.lifecycle.lifetime",
    "Settings": "instar.server.settings",
    "running": "instar.server.lifecycle.lifetime",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
