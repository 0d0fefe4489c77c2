"""Timers that go on for ever are made to fail in ways they do not expect, and a shared future is
cancelled under what waits for it: each is counted and goes on. ``tests/layout/test_background.py``
lists every place that sets a timer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from instar.base.supervision import FAILURES, Supervision, count_unhandled
from instar.server.http import connections
from instar.server.http.connections import ConnectionSet
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.stored.timer_wheel import TimerWheel
from instar.wire.rpc.connection import Http2Connection
from instar.wire.rpc.status import RpcError
from tests.support.background import UnexpectedError

pytestmark = pytest.mark.anyio


def _counted(part: str) -> float:
    return FAILURES.value((part,))


class _Connection:
    """Fails, or tells that it was looked at."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.aborted = failure, False
        self.looked = asyncio.Queue[float]()

    def close_when_idle(self) -> bool:
        return True

    def close_if_stalled(self, now: float) -> None:
        self.looked.put_nowait(now)
        if self.failure is not None:
            raise self.failure

    def backlog(self) -> int:
        return 0

    def cut_off(self) -> None:
        self.abort()

    def abort(self) -> None:
        self.aborted = True


async def test_the_search_for_stalled_connections_goes_on_after_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_SWEEP_SECONDS", 0.001)
    kept, good, bad = ConnectionSet(), _Connection(), _Connection(UnexpectedError())
    before = _counted("connections")

    kept.add(bad)
    kept.add(good)

    for _ in range(3):  # sweeps
        await bad.looked.get()
        await good.looked.get()
    assert _counted("connections") >= before + 2
    assert bad.aborted
    assert not good.aborted
    await kept.close(0)


async def test_a_timer_of_a_watch_that_fails_takes_none_from_the_others() -> None:
    wheel, before = TimerWheel(), _counted("watches")
    loop = asyncio.get_running_loop()
    called = asyncio.Event()

    class Failing:
        def due(self) -> None:
            raise UnexpectedError

    class Calling:
        def due(self) -> None:
            called.set()

    wheel.put(Failing(), loop.time())
    wheel.put(Calling(), loop.time())
    await called.wait()

    assert _counted("watches") == before + 1


async def test_deadlines_of_calls_go_on_after_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = Http2Connection.__new__(Http2Connection)
    connection._loop = asyncio.get_running_loop()
    connection._alarm, connection._alarm_at = None, 0.0
    given_up: list[Any] = []

    class Stream:
        def __init__(self, deadline: float) -> None:
            self.deadline, self.done = deadline, False

    def give_up(self: Http2Connection, stream: Any, error: RpcError) -> None:
        stream.done = True
        given_up.append(stream)
        if len(given_up) == 1:
            raise UnexpectedError

    monkeypatch.setattr(Http2Connection, "give_up", give_up)
    later = asyncio.get_running_loop().time() + 3600
    streams: Any = {1: Stream(0.0), 3: Stream(0.0), 5: Stream(later)}
    connection._streams, connection._waiting = streams, connection.__dict__.get("_waiting", [])
    before = _counted("rpc")

    connection._check_deadlines()

    assert given_up == [streams[1], streams[3]]
    assert connection._alarm_at == later
    assert _counted("rpc") == before + 1
    assert connection._alarm is not None
    connection._alarm.cancel()


async def test_a_failure_that_reaches_the_event_loop_is_counted() -> None:
    loop, ended = asyncio.get_running_loop(), [False]
    before, handler = _counted("event-loop"), loop.get_exception_handler()
    told: list[Any] = []
    loop.set_exception_handler(lambda _, context: told.append(context))

    def fail() -> None:
        raise UnexpectedError

    try:
        count_unhandled(loop, lambda: ended[0])
        loop.call_soon(fail)
        await asyncio.sleep(0)
        ended[0] = True
        loop.call_soon(fail)
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(handler)

    assert len(told) == 2
    assert _counted("event-loop") == before + 1


@pytest.mark.parametrize(
    ("files", "counted"),
    [
        (["uvloop/sslproto.pyx", "uvloop/handles/handle.pyx"], 0),
        (["uvloop/sslproto.pyx", "instar/server/http/http1.py"], 1),
        (["instar/server/http/http1.py", "uvloop/handles/handle.pyx"], 1),
    ],
)
async def test_a_connection_that_closes_under_tls_is_no_failure_of_a_part(
    files: list[str], counted: int
) -> None:
    """uvloop calls the handler so when its peer is gone before its TLS record is written."""
    loop = asyncio.get_running_loop()
    before, handler = _counted("event-loop"), loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: None)
    outer, inner = files
    inside = compile("raise RuntimeError", inner, "exec")
    with pytest.raises(RuntimeError) as raised:
        exec(compile("exec(inside)", outer, "exec"), {"inside": inside})
    trace = raised.value.__traceback__
    assert trace is not None  # the first frame is this test

    try:
        count_unhandled(loop, lambda: False)
        error = raised.value.with_traceback(trace.tb_next)
        loop.call_exception_handler({"exception": error, "transport": object()})
    finally:
        loop.set_exception_handler(handler)

    assert _counted("event-loop") == before + counted


async def test_a_part_that_waits_for_what_another_cancelled_goes_on() -> None:
    supervision = Supervision()
    runs = asyncio.Queue[int]()
    shared = asyncio.get_running_loop().create_future()

    async def run() -> None:
        runs.put_nowait(1)
        if not shared.done():
            await shared
        await asyncio.Event().wait()

    kept = supervision.keep("a part", run)
    await runs.get()
    before = _counted("a part")

    shared.cancel()

    await runs.get()  # it is run again
    assert _counted("a part") == before + 1
    await kept.stop()
    assert kept.task.cancelled()


async def test_a_key_whose_work_waits_for_what_another_cancelled_is_tried_again() -> None:
    tries = asyncio.Queue[str]()
    shared = asyncio.get_running_loop().create_future()

    async def reconcile(key: str) -> float | None:
        tries.put_nowait(key)
        if not shared.done():
            await shared
        return None

    queue: Queue[str] = Queue("shared work", reconcile, Backoff(0.001, 0.001))
    before = _counted("shared work")
    queue.add("a")
    await tries.get()

    shared.cancel()

    assert await tries.get() == "a"
    assert _counted("shared work") == before + 1
    await queue.stop()
