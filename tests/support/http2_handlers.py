"""Handlers of HTTP/2 connections in tests, and the run of a test's script within a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from instar.base.http2 import frames
from instar.kube.access.attributes import User
from instar.server.http.messages import Outlet, Request, Response

Script = Callable[[], Coroutine[Any, Any, None]]


def run(script: Script) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await script()

    asyncio.run(bounded())


class Server:
    """A handler that keeps its requests and answers by path."""

    def __init__(self, **answers: Response) -> None:
        self.requests: list[Request] = []
        self._answers = answers

    async def __call__(self, request: Request, peer: User | None) -> Response:
        self.requests.append(request)
        path = request.path.strip("/")
        return self._answers.get(path) or Response(200, (path.encode() or b"hello",))


class Events:
    """A stream of events, which a test sends."""

    def __init__(self) -> None:
        self.outlet: Outlet | None = None
        self.resumed = 0
        self.closed = False

    def open(self, outlet: Outlet) -> None:
        self.outlet = outlet

    def resume(self) -> None:
        self.resumed += 1

    def close(self) -> None:
        self.closed = True


async def hello(request: Request, peer: User | None) -> Response:
    return Response(200, (b"hello",))


async def never(request: Request, peer: User | None) -> Response:
    await asyncio.sleep(1000)
    raise AssertionError


def raw(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frames.frame(kind, flags, stream, payload)
