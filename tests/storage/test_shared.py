from __future__ import annotations

import asyncio

import pytest

from instar.base.eager_tasks import start
from instar.base.taskless_wait import Waiter, waiter
from instar.wire.storage.coalesced_call import CoalescedCall

pytestmark = pytest.mark.anyio


class Slow:
    """Answers with the number of the call, when told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Semaphore(0)

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        await self.go.acquire()
        return number


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_callers_of_one_moment_share_a_call() -> None:
    slow = Slow()
    shared = CoalescedCall(slow)
    callers = [asyncio.ensure_future(shared.get()) for _ in range(10)]
    slow.go.release()
    assert await asyncio.gather(*callers) == [1] * 10


async def test_a_caller_never_gets_the_answer_to_an_earlier_call() -> None:
    slow = Slow()
    shared = CoalescedCall(slow)
    first = asyncio.ensure_future(shared.get())
    await turns()
    late = [asyncio.ensure_future(shared.get()) for _ in range(3)]
    await turns()
    slow.go.release()
    slow.go.release()
    assert await first == 1
    assert await asyncio.gather(*late) == [2, 2, 2]


@pytest.mark.parametrize(("concurrent", "answers"), [(1, [1, 2, 2]), (2, [1, 2, 3])])
async def test_callers_wait_together_when_the_most_calls_are_in_flight(
    concurrent: int, answers: list[int]
) -> None:
    slow = Slow()
    shared = CoalescedCall(slow, concurrent=concurrent)
    callers = []
    for _ in answers:
        callers.append(asyncio.ensure_future(shared.get()))
        await turns()
    assert slow.calls == concurrent

    for _ in answers:
        slow.go.release()

    assert await asyncio.gather(*callers) == answers


async def test_a_failure_reaches_every_caller_and_the_next_call_is_made() -> None:
    attempts = 0

    async def fail_once() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("down")
        return attempts

    shared = CoalescedCall(fail_once)
    results = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
    assert [type(result) for result in results] == [OSError, OSError]
    assert await shared.get() == 2


async def test_a_cancelled_caller_does_not_cancel_the_shared_call() -> None:
    slow = Slow()
    shared = CoalescedCall(slow)
    gone, stays = (asyncio.ensure_future(shared.get()) for _ in range(2))
    await turns()
    gone.cancel()
    slow.go.release()
    assert await stays == 1


async def test_a_caller_without_a_task_resumes_without_one() -> None:
    async def answer() -> int:
        return 7

    shared, found = CoalescedCall(answer), list[int]()

    async def ask() -> None:
        found.append(await shared.get())
        assert asyncio.current_task() is None

    loop = asyncio.get_running_loop()
    for _ in range(3):
        loop.call_soon(lambda: start(ask()) and None)
    await turns()
    await turns()
    assert found == [7, 7, 7]


async def test_callers_during_two_calls_share_the_third() -> None:
    slow = Slow()
    shared = CoalescedCall(slow)
    callers = []
    for _ in range(4):
        callers.append(asyncio.ensure_future(shared.get()))
        await turns()
    assert slow.calls == 2

    for _ in range(3):
        slow.go.release()
    assert await asyncio.gather(*callers) == [1, 2, 3, 3]


async def test_the_next_call_is_sent_before_answered_callers_resume() -> None:
    happened: list[str] = []
    answers: list[Waiter[int]] = []

    async def call() -> int:
        happened.append("call")
        answers.append(waiter(prompt=True))
        found: int = await answers[-1]
        return found

    shared = CoalescedCall(call)

    async def ask() -> None:
        await shared.get()
        happened.append("answered")

    loop = asyncio.get_running_loop()
    for _ in range(3):
        loop.call_soon(lambda: start(ask()) and None)
        await turns()
    loop.call_soon(answers[0].set_result, 1)
    await turns()
    assert happened == ["call", "call", "call", "answered"]


async def test_a_call_that_became_a_task_makes_none_of_the_next() -> None:
    tasks: list[object] = []
    again = asyncio.Event()

    async def call() -> int:
        if not again.is_set():
            await again.wait()
            return 0
        tasks.append(asyncio.current_task())
        return len(tasks)

    shared = CoalescedCall(call)
    callers = []
    for _ in range(3):  # the third waits until one of two is over
        callers.append(asyncio.ensure_future(shared.get()))
        await turns()
    again.set()
    assert await asyncio.gather(*callers) == [0, 0, 1]
    assert tasks == [None]
