from __future__ import annotations

from instar.server.registry.stored.version_reads import REMEMBERED, Readership


def test_a_version_counts_as_read_until_nobody_has_asked_for_a_while() -> None:
    now = 0.0
    readership = Readership(lambda: now)

    assert readership.lively("v1")
    now = REMEMBERED + 1
    assert not readership.lively("v1")
    readership.note("v1")
    assert readership.lively("v1")
    assert not readership.lively("v2")
