"""Each recorded request is answered as kube-apiserver answered it, but for the lines named here."""

from __future__ import annotations

import pytest

from tests.builtins.replay import FILES, RECORDINGS, Replayed, recorded

EXCEPTIONS = {
    "defaults storageversionmigration.notServed": "we serve storage migrations",
    "patch token.02.defaults": "the recorded server had another issuer",
}
BY_THE_CLOCK = {
    "patch apply.deployment.09.status": "writes of one second are ordered by their managers",
    "patch apply.deployment.11.scale.mf": "the same",
}
"""Right or not by when the second changes."""


def _lines() -> list[str]:
    if not RECORDINGS.exists():
        return [""]  # one test, which says so
    return [f"{name} {row['id']}" for name in FILES for row in recorded(name)]


@pytest.mark.parametrize("line", _lines())
def test_a_recorded_request_is_answered_as_recorded(replayed: Replayed, line: str) -> None:
    if line in EXCEPTIONS or line in BY_THE_CLOCK:
        pytest.skip(EXCEPTIONS.get(line) or BY_THE_CLOCK[line])

    assert not replayed[line]


def test_no_exception_outlives_its_reason(replayed: Replayed) -> None:
    healed = [line for line in EXCEPTIONS if not replayed[line]]

    assert not healed
