"""How long an object has left, however long a client says it should."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from instar.server.registry.verbs.graceful_delete import Grace, begin

NOW = datetime(2026, 11, 16, 7, 0, 0, tzinfo=UTC)
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_the_time_is_that_from_now() -> None:
    metadata: dict[str, Any] = {"generation": 1}
    assert begin(metadata, 30, 30, NOW) is Grace.RUNNING
    assert metadata == {
        "generation": 2,
        "deletionTimestamp": "2026-11-16T07:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }


def test_a_repeated_delete_only_shortens_the_grace_period() -> None:
    metadata: dict[str, Any] = {}
    begin(metadata, 30, 30, NOW)
    assert begin(metadata, 40, 40, NOW) is Grace.PENDING
    assert begin(metadata, 10, 10, NOW) is Grace.RUNNING
    assert metadata["deletionTimestamp"] == "2026-11-16T07:00:10Z"
    assert begin(metadata, 0, 0, NOW) is Grace.OVER


@given(INT64, INT64)
def test_any_time_has_an_end_as_in_go(first: int, second: int) -> None:
    """Found by the fuzzer: 99999999999999 seconds are more than a date can be away."""
    metadata: dict[str, Any] = {}
    begin(metadata, first, first, NOW)
    begin(metadata, second, second, NOW)
    ends = datetime.fromisoformat(metadata["deletionTimestamp"])
    assert 1400 < ends.year < 2700
