"""Computes how long to wait until every API server uses a changed CRD. Pure.

Called by ``instar migrate``, ``instar upgrade`` and the console, which start the rewriting pass or
an undo after that time. Each API server of a cluster learns of a new storage version on its own,
and finishes the writes that it began with the old one. No API reports when the last API server has
done so; therefore a migration waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from instar.tools.migrator.live_crd import LiveCrd

CLOCKS_AGREE = timedelta(seconds=30)
"""Allowed difference between the server's clock, by which the change is dated, and our own."""


SPREAD = timedelta(seconds=10)
"""Time after which every API server of a cluster is assumed to use a changed CRD."""


SETTLE = 10.0
"""Seconds that a migration waits by default."""


def seconds_to_settle(live: LiveCrd, settle: float, now: datetime) -> float:
    long_ago = timedelta(seconds=settle) + CLOCKS_AGREE
    return 0.0 if live.changed is not None and now - live.changed > long_ago else settle


def waiting_text(seconds: float) -> str:
    return f"waiting {seconds:g} s for every API server to know the CRD (--settle)"
