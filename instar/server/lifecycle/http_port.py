"""HTTP port of a server: opened before the store is read, so that health is answered meanwhile.

``lifetime.py`` makes one per server and starts it as two parts: the port, and the requests that
are waited for when the server stops. Connections and HTTP are in ``server/http``.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.server.http.connection_balancer import (
    BalancingPort,
    ListeningPort,
    ProtocolFactory,
    SingleProcessPort,
    WorkerPort,
)
from instar.server.http.protocols import Connections
from instar.server.lifecycle.parts import Part
from instar.server.settings import Settings


class HttpPort:
    """The port of a server, from its opening until the last response is sent."""

    def __init__(
        self,
        settings: Settings,
        connections: Connections,
        make_protocol: ProtocolFactory,
        end_watches: Callable[[], None],
    ) -> None:
        """``make_protocol`` wraps ``connections`` in TLS."""
        self._settings = settings
        self.connections = connections
        self._make_protocol = make_protocol
        self._end_watches = end_watches
        self._listening: ListeningPort | None = None
        self.number = settings.port

    def port_part(self) -> Part:
        return Part("port", self._open, self._close)

    def requests_part(self) -> Part:
        """Started after everything that answers requests, and therefore stopped before it."""
        return Part("requests", self._serve, self._close)

    @property
    def url(self) -> str:
        host = self._settings.host
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        shown = f"[{reachable}]" if ":" in reachable else reachable
        return f"https://{shown}:{self.number}"

    async def _open(self) -> None:
        self._listening = await self._listen()
        self.number = self._listening.port

    async def _listen(self) -> ListeningPort:
        host, port, folder = self._settings.host, self._settings.port, self._settings.shared_port
        if folder is None:
            return await SingleProcessPort.open(self._make_protocol, host, port)
        if self._settings.worker:
            return WorkerPort(self._make_protocol, port, folder)
        return await BalancingPort.open(self._make_protocol, host, port, folder)

    async def _serve(self) -> None:
        assert self._listening is not None
        await self._listening.start_serving()

    async def _close(self) -> None:
        """Stop accepting connections, and let open ones finish their requests."""
        listening, self._listening = self._listening, None
        if listening is None:
            return
        listening.close()
        self._end_watches()
        await self.connections.close(self._settings.grace_seconds)
