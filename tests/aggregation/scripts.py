"""What the backend of the proxy's tests does, by the end of the path."""

from __future__ import annotations

import threading

from tests.aggregation.backend import Arrived, Wire, discovery

GROUP = "echo.example.com"
HOME = f"/apis/{GROUP}/v1"


class Scripts:
    """What the backend does, by the end of the path."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.gone = threading.Event()

    def __call__(self, arrived: Arrived, wire: Wire) -> None:
        found = getattr(self, arrived.path.rpartition("/")[2].replace("-", "_"), None)
        if callable(found):
            found(arrived, wire)
        else:
            discovery(arrived, wire)

    def echo(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(
            201,
            arrived.body,
            "text/plain",
            Warning='299 - "careful"',
            X_Own="mine",
            Audit_Id="of-the-backend",
            Cache_Control="public, immutable",
            X_Kubernetes_PF_FlowSchema_UID="of-the-backend",
            Access_Control_Allow_Origin="*",
        )

    def redirect(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(301, b"", Location="https://elsewhere/")

    def hang(self, arrived: Arrived, wire: Wire) -> None:
        self.release.wait(20)

    def garbage(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"this is not HTTP\r\n\r\n")
        wire.cut()

    def half(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        wire.cut()

    def mute(self, arrived: Arrived, wire: Wire) -> None:
        wire.cut()

    def busy(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(503, b"later", "text/plain", Retry_After="7")

    def events(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.send(b"6\r\nfirst\n\r\n")
        self.release.wait(20)
        wire.send(b"7\r\nsecond\n\r\n")
        if not wire.reader.read(1):
            self.gone.set()

    def flood(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(50):
            wire.send(b"x" * 1_000_000)

    def refuse(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(403, b"no upgrade", "text/plain")

    def plain(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(200, b"no upgrade", "text/plain")

    def tunnel(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
        )
        while data := wire.reader.read1(100):
            wire.send(data.upper())
        self.gone.set()
