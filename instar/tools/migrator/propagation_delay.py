"""Computes how long to wait until every API server uses a changed CRD. Pure.

Each API server of a cluster learns of a new storage version on its own, and finishes what it had
begun with the old one. No API tells when the last of them has, so a migration waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from instar.tools.migrator.live_crd import LiveCrd

CLOCKS_AGREE = timedelta(seconds=30)
"""The change was timed by a server's clock, the waiting is timed by ours."""


SPREAD = timedelta(seconds=10)
"""After so long every API server of a cluster is taken to know a change."""


SETTLE = 10.0
"""Seconds that a migration waits by default."""


def seconds_to_settle(live: LiveCrd, settle: float, now: datetime) -> float:
    long_ago = timedelta(seconds=settle) + CLOCKS_AGREE
    return 0.0 if live.changed is not None and now - live.changed > long_ago else settle
