"""Fails background parts of a running server in ways that they do not expect."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from instar.base.supervision import SupervisedTask, Supervision
from tests.support.server import LiveServer


class UnexpectedError(Exception):
    """An error that no part of the server handles by name."""


def supervision_of(server: LiveServer) -> Supervision:
    return server.running.machinery.supervision


def tasks_of(server: LiveServer) -> list[SupervisedTask]:
    return supervision_of(server).tasks()


def in_loop(server: LiveServer, work: Callable[[], None]) -> None:
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    server.loop.call_soon_threadsafe(run)
    assert done.wait(10)


def strike(server: LiveServer, kept: SupervisedTask) -> None:
    """Let what the task waits for end in an exception."""
    in_loop(server, lambda: fail_wait(kept))


def fail_wait(kept: SupervisedTask) -> None:
    loop = asyncio.get_running_loop()
    waiter = kept.task._fut_waiter  # type: ignore[attr-defined]
    if waiter is None or waiter.done():
        loop.call_soon(fail_wait, kept)  # it is about to run: after that it waits
    elif isinstance(waiter, asyncio.Task):
        waiter.cancel()
        loop.call_soon(fail_wait, kept)
    else:
        waiter.set_exception(UnexpectedError(kept.record.name))


def audit_kubeconfig(url: str) -> Any:
    """The configuration of an audit webhook at this address."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
