"""The API server. ``async with instar.server.running() as server: server.kubeconfig``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instar.server.running import RunningServer, running
    from instar.server.settings import Settings

__all__ = ["RunningServer", "Settings", "running"]


def __getattr__(name: str) -> Any:
    """Lazily, so that importing a part of the package does not import the whole server."""
    if name in ("RunningServer", "running"):
        from instar.server import running as module

        return getattr(module, name)
    if name == "Settings":
        from instar.server.settings import Settings

        return Settings
    raise AttributeError(name)
