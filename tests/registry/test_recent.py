"""Requests of the last day, out of counters that only grow."""

from __future__ import annotations

from instar.server.registry.insight.daily_requests import DAY, HOUR, DailyRequests, VersionKey

V1 = VersionKey("example.com", "widgets", "v1")


def test_requests_counted_before_the_window_are_not_recent() -> None:
    recent = DailyRequests()
    recent.mark(0.0, {V1: 100})

    assert recent.counts(60.0, {V1: 130}) == {V1: 30}
    assert recent.since(60.0) == 0.0


def test_a_day_later_only_the_last_day_counts() -> None:
    recent = DailyRequests()
    for hour in range(49):
        assert recent.is_due(hour * HOUR)
        recent.mark(hour * HOUR, {V1: hour})

    now = 48 * HOUR
    assert recent.counts(now, {V1: 48}) == {V1: 24}
    assert recent.since(now) == now - DAY


def test_marks_are_an_hour_apart() -> None:
    recent = DailyRequests()
    recent.mark(0.0, {})

    assert not recent.is_due(HOUR - 1)
    assert recent.counts(5.0, {V1: 1}) == {V1: 1}
