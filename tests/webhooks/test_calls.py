"""The record of calls tells what a scrape cannot, and stays small."""

from __future__ import annotations

from instar.wire.webhooks.call_log import MOST_FAILURES, MOST_MINUTES, CallLog, Failure, WebhookCall

HOOK = WebhookCall("conversion", "", "widgets.example.com")


class Clock:
    now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def test_calls_are_counted_by_time_minute_and_direction() -> None:
    clock = Clock()
    log = CallLog(clock)
    log.note(HOOK, "https://a", 0.004, None, ("v1", "v2"))
    clock.now += 60
    log.note(HOOK, "https://a", 60.0, Failure("timeout", "too late"), ("v2", "v1"))

    [found] = log.document()["webhooks"]

    assert (found["calls"], found["failures"], found["lastFailed"]) == (2, 1, True)
    assert found["latency"]["counts"][-1] == 1
    assert [minute["calls"] for minute in found["minutes"]] == [1, 1]
    assert found["recentFailures"][0]["text"] == "too late"
    assert [item["failures"] for item in found["directions"]] == [0, 1]


def test_a_call_rejected_because_too_many_wait_is_recorded() -> None:
    log = CallLog()
    log.turned_away(HOOK, "https://a")

    [found] = log.document()["webhooks"]

    assert (found["rejected"], found["calls"], found["lastCall"]) == (1, 0, None)


def test_nothing_grows_without_end() -> None:
    clock = Clock()
    log = CallLog(clock, most=2)
    for number in range(200):
        clock.now += 60
        log.note(HOOK, "a", 0.1, Failure("x", "y" * 10_000), ("v1", f"v{number}"))
    for name in ("b", "c"):
        log.note(WebhookCall("mutating", "all", name), "a", 0.1)

    names = [found["name"] for found in log.document()["webhooks"]]
    assert names == ["b", "c"]
    again = CallLog(clock)
    for number in range(200):
        clock.now += 60
        again.note(HOOK, "a", 0.1, Failure("x", "y" * 10_000), ("v1", f"v{number}"))
    [found] = again.document()["webhooks"]
    assert len(found["minutes"]) == MOST_MINUTES
    assert len(found["recentFailures"]) == MOST_FAILURES
    assert len(found["directions"]) == 64
    assert len(found["recentFailures"][0]["text"]) == 1_000
