"""Coroutines begun at once: what becomes of them when they have to wait, and when nobody wants
their answer any more."""

from __future__ import annotations

import asyncio
import gc
from contextvars import ContextVar

import pytest

from instar.base.eager_tasks import FutureDriven, TasklessCoroutine, start
from instar.base.taskless_wait import Ticket, Waiter, waiter, with_timeout

pytestmark = pytest.mark.anyio

_whose: ContextVar[str] = ContextVar("whose", default="")


class Begun:
    """Begins coroutines as a connection does: outside any task."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.waiters: list[Waiter[int]] = []
        self.handle: asyncio.Task[None] | TasklessCoroutine | None = None

    async def begin(self, steps: int = 1) -> None:
        asyncio.get_running_loop().call_soon(self._begin, steps)
        await turn()

    def _begin(self, steps: int) -> None:
        self.handle = start(self._wait(steps))

    async def _wait(self, steps: int) -> None:
        try:
            for _ in range(steps):
                mine: Waiter[int] = waiter()
                self.waiters.append(mine)
                self.told.append(await mine)
        except asyncio.CancelledError:
            self.told.append("cancelled")
            await asyncio.sleep(0)
            self.told.append("and answered")
        except OSError as error:
            self.told.append(str(error))


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_coroutine_that_waits_for_a_ticket_resumes_without_a_task() -> None:
    begun, before = Begun(), len(asyncio.all_tasks())
    await begun.begin(steps=2)
    for number in (1, 2):
        begun.waiters[-1].set_result(number)
        await turn()
    assert begun.told == [1, 2]
    assert [type(each) for each in begun.waiters] == [Ticket, Ticket]
    assert len(asyncio.all_tasks()) == before


async def test_a_failure_is_raised_where_the_outcome_was_waited_for() -> None:
    begun = Begun()
    await begun.begin()
    begun.waiters[0].set_exception(OSError("down"))
    await turn()
    assert begun.told == ["down"]


async def test_an_outcome_that_is_there_already_is_not_waited_for() -> None:
    ticket: Ticket[int] = Ticket()
    ticket.set_result(5)
    assert await ticket == 5


async def test_a_ticket_is_resolved_once() -> None:
    ticket: Ticket[int] = Ticket()
    ticket.set_result(5)
    with pytest.raises(asyncio.InvalidStateError):
        ticket.set_result(6)


async def test_a_waiting_coroutine_is_cancelled_where_it_waits_and_may_still_return() -> None:
    begun = Begun()
    await begun.begin()
    assert begun.handle is not None
    begun.handle.cancel()
    await turn()
    assert begun.told == ["cancelled", "and answered"]
    assert begun.waiters[0].done()


async def test_a_cancellation_in_the_turn_of_the_result_wins() -> None:
    begun = Begun()
    await begun.begin()
    assert begun.handle is not None
    begun.waiters[0].set_result(1)
    begun.handle.cancel()
    await turn()
    assert begun.told == ["cancelled", "and answered"]


async def test_a_coroutine_that_then_waits_for_something_else_becomes_a_task() -> None:
    first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    told: list[str] = []

    async def both() -> None:
        try:
            tickets.append(waiter())
            await tickets[0]
            await first
        except asyncio.CancelledError:
            told.append("cancelled")

    tickets: list[Waiter[None]] = []
    handles: list[asyncio.Task[None] | TasklessCoroutine | None] = []
    asyncio.get_running_loop().call_soon(lambda: handles.append(start(both())))
    await turn()
    tickets[0].set_result(None)
    await turn()
    assert handles[0] is not None
    handles[0].cancel()
    await turn()
    assert told == ["cancelled"]


async def test_a_prompt_waiter_resumes_in_the_step_that_sets_the_result() -> None:
    told: list[int] = []
    ticket: Ticket[int] = Ticket(prompt=True)

    async def wait() -> None:
        told.append(await ticket)

    asyncio.get_running_loop().call_soon(lambda: start(wait()) and None)
    await turn()
    seen: list[list[int]] = []

    def bring() -> None:
        ticket.set_result(1)
        seen.append([*told])

    asyncio.get_running_loop().call_soon(bring)
    await turn()
    assert seen == [[1]]


async def test_a_cancelled_prompt_waiter_resumes_in_a_turn_of_its_own() -> None:
    told: list[str] = []
    seen: list[list[str]] = []
    ticket: Ticket[int] = Ticket(prompt=True)

    async def wait() -> None:
        try:
            await ticket
        except asyncio.CancelledError:
            told.append("cancelled")

    def begin_and_leave() -> None:
        handle = start(wait())
        assert handle is not None
        handle.cancel()
        seen.append([*told])

    asyncio.get_running_loop().call_soon(begin_and_leave)
    await turn()
    assert (seen, told) == ([[]], ["cancelled"])


async def test_a_prompt_waiter_does_not_resume_inside_the_task_that_sets_the_result() -> None:
    tasks: list[object] = []
    ticket: Ticket[int] = Ticket(prompt=True)

    async def wait() -> None:
        await ticket
        tasks.append(asyncio.current_task())

    asyncio.get_running_loop().call_soon(lambda: start(wait()) and None)
    await turn()
    ticket.set_result(1)
    await turn()
    assert tasks == [None]


async def test_a_failure_of_the_waiter_does_not_reach_the_setter_of_the_result() -> None:
    reports: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, report: reports.append(report["exception"]))
    ticket: Ticket[int] = Ticket(prompt=True)
    failure = OSError("on its way")

    async def wait() -> None:
        await ticket
        raise failure

    loop.call_soon(lambda: start(wait()) and None)
    await turn()
    loop.call_soon(ticket.set_result, 1)
    await turn()
    assert reports == [failure]


async def test_in_a_task_one_waits_for_a_future() -> None:
    assert isinstance(waiter(), asyncio.Future)


async def test_a_resumed_coroutine_has_its_original_context() -> None:
    seen: list[str] = []
    tickets: list[Waiter[None]] = []

    async def look() -> None:
        _whose.set("mine")
        tickets.append(waiter())
        await tickets[-1]
        seen.append(_whose.get())

    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: start(look()) and None)
    await turn()
    loop.call_soon(lambda: _whose.set("theirs") and tickets[0].set_result(None))
    await turn()
    assert seen == ["mine"]


async def test_a_deadline_holds_for_a_coroutine_without_a_task() -> None:
    ticket, told, over = Ticket[int](), list[object](), asyncio.Event()

    async def limited() -> None:
        told.append(await ticket)
        told.append(asyncio.current_task())
        told.append(await with_timeout(5, lambda: asyncio.sleep(0, "in time")))
        try:
            await with_timeout(0.01, asyncio.Event().wait)
        except TimeoutError:
            told.append("too late")
        over.set()

    asyncio.get_running_loop().call_soon(lambda: start(limited()))
    await turn()
    ticket.set_result(1)
    await over.wait()

    assert told == [1, None, "in time", "too late"]


async def test_cancelling_the_caller_cancels_work_with_a_deadline() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    handles: list[asyncio.Task[None] | TasklessCoroutine | None] = []
    asyncio.get_running_loop().call_soon(lambda: handles.append(start(with_timeout(60, work))))
    await begun.wait()
    [handle] = handles
    assert handle is not None
    handle.cancel()

    await ended.wait()


async def test_a_future_driven_coroutine_takes_every_kind_of_wait_without_a_task() -> None:
    told: list[object] = []
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    ticket: Ticket[str] = Ticket()

    async def work() -> None:
        told.append(asyncio.current_task())
        told.append(await future)
        await asyncio.sleep(0)
        told.append(await ticket)

    asyncio.get_running_loop().call_soon(FutureDriven, work())
    await turn()
    future.set_result("future")
    await turn()
    ticket.set_result("ticket")
    await turn()

    assert told == [None, "future", "ticket"]


async def test_cancelling_a_future_driven_coroutine_ends_its_wait() -> None:
    told: list[str] = []

    async def work(waiting: Waiter[int]) -> None:
        try:
            await waiting
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    waits: tuple[Waiter[int], ...] = (asyncio.get_running_loop().create_future(), Ticket())
    for waiting in waits:
        FutureDriven(work(waiting)).cancel()
        await turn()

    assert told == ["cancelled", "cancelled"]


async def test_a_failure_of_a_future_driven_coroutine_reaches_the_loop() -> None:
    reported: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    failure = OSError("broken")

    async def work() -> None:
        raise failure

    FutureDriven(work())
    loop.set_exception_handler(None)

    assert reported == [failure]


async def test_a_cancellation_before_the_tasks_first_step_reaches_what_is_waited_for() -> None:
    loop, told, reported = asyncio.get_running_loop(), list[str](), list[object]()
    loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

    async def part() -> None:
        try:
            await turn()
        except asyncio.CancelledError:
            told.append("part cancelled")
            raise
        raise OSError("down")

    async def whole() -> None:
        try:
            await asyncio.gather(part(), part())
        except asyncio.CancelledError:
            told.append("whole cancelled")

    def begin_and_leave() -> None:
        task = start(whole())
        assert isinstance(task, asyncio.Task)
        # After the first step of the parts, before that of the task.
        loop.call_soon(task.cancel)

    def begin_and_leave_at_once() -> None:
        task = start(whole())
        assert isinstance(task, asyncio.Task)
        task.cancel()

    for leave in (begin_and_leave, begin_and_leave_at_once):
        loop.call_soon(leave)
        for _ in range(4):
            await turn()
    gc.collect()

    assert reported == []
    assert told == ["part cancelled", "part cancelled", "whole cancelled"] * 2


async def test_a_cancellation_after_the_failure_does_not_leave_it_unread() -> None:
    loop, reported = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

    async def waiting(future: asyncio.Future[None]) -> None:
        await future

    def begin_fail_and_leave() -> None:
        future: asyncio.Future[None] = loop.create_future()
        task = start(waiting(future))
        assert isinstance(task, asyncio.Task)
        future.set_exception(OSError("down"))
        task.cancel()

    loop.call_soon(begin_fail_and_leave)
    await turn()
    gc.collect()

    assert reported == []
