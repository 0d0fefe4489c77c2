"""The API server. ``async with instar.server.running() as server: server.kubeconfig``."""

from instar.server.life.lifetime import RunningServer, running
from instar.server.settings import Settings

__all__ = ["RunningServer", "Settings", "running"]
