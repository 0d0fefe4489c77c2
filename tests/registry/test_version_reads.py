from __future__ import annotations

from instar.server.registry.stored.version_reads import REMEMBERED, VersionReads


def test_a_version_counts_as_read_for_a_while_after_its_last_read() -> None:
    now = 0.0
    version_reads = VersionReads(lambda: now)

    assert version_reads.is_recently_read("v1")
    now = REMEMBERED + 1
    assert not version_reads.is_recently_read("v1")
    version_reads.note("v1")
    assert version_reads.is_recently_read("v1")
    assert not version_reads.is_recently_read("v2")
