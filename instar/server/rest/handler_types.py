"""How requests are answered, as types: the way from a connection to whoever answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from instar.kube.access.attributes import User
from instar.server.rest.request import Request
from instar.server.rest.responses import Response

Handler = Callable[[Request, User | None], Coroutine[Any, Any, Response]]
"""The user is who the connection's certificate says, None where it shows none."""

Secret = Callable[[], bytes]
"""Known to every process that serves this API with the same keys, and to nobody else."""

Front = Callable[[Handler, Secret], Handler]
"""What stands before the API and may answer in its place (``instar/tools/console``)."""
