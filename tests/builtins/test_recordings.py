"""Each recorded request is answered as kube-apiserver answered it, but for the lines named here."""

from __future__ import annotations

import pytest

from tests.builtins.replay import FILES, RECORDINGS, Replayed, recorded

_NO_TOKENS = "no tokens for service accounts yet"
EXCEPTIONS = {
    "defaults storageversionmigration.notServed": "we serve storage migrations",
    "invalid sa.token.badExpiration": _NO_TOKENS,
    "invalid sa.token.tooLong": _NO_TOKENS,
    "invalid sa.token.noSA": _NO_TOKENS,
    "invalid sa.token.badRef": _NO_TOKENS,
    "invalid sa.token.badRefKind": _NO_TOKENS,
    "patch token.01.create": _NO_TOKENS,
    "patch token.02.defaults": _NO_TOKENS,
}
BY_THE_CLOCK = {
    "patch apply.deployment.09.status": "writes of one second are ordered by their managers",
    "patch apply.deployment.11.scale.mf": "the same",
}
"""Right or not by when the second changes."""


def _lines() -> list[str]:
    if not RECORDINGS.exists():
        return []
    return [f"{name} {row['id']}" for name in FILES for row in recorded(name)]


@pytest.mark.parametrize("line", _lines())
def test_a_recorded_request_is_answered_as_recorded(replayed: Replayed, line: str) -> None:
    if line in EXCEPTIONS or line in BY_THE_CLOCK:
        pytest.skip(EXCEPTIONS.get(line) or BY_THE_CLOCK[line])

    assert not replayed[line]


def test_no_exception_outlives_its_reason(replayed: Replayed) -> None:
    healed = [line for line in EXCEPTIONS if not replayed[line]]

    assert not healed
