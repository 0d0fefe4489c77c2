"""Estimates the load of the upgrade on the real cluster, by its number of objects. Pure.

``run.py`` calls it. A rehearsal measures conversion and validation; the time that the network and
etcd add is an assumption, and the report says so.
"""

from __future__ import annotations

from instar.tools.rehearsal.model import CrdRehearsal, Load, StepKind

_PAGE = 500
_CONCURRENCY = 16
_SECONDS_A_WRITE = 0.010
"""Assumed time of one write on a cluster whose etcd syncs to a disk."""
_SETTLE_SECONDS = 10.0


def load_of(crd: CrdRehearsal, served: int) -> Load | None:
    """Return the load; None if nothing has to be rewritten. ``served``: versions read to verify."""
    migrations = [step for step in crd.steps if step.kind is StepKind.MIGRATE and step.migration]
    if not migrations or not crd.objects:
        return None
    number = crd.objects * len(migrations)
    pages = -(-crd.objects // _PAGE) * max(served, 1) * 2 * len(migrations)
    measured = sum(step.migration.seconds for step in migrations if step.migration) / number
    seconds = _SETTLE_SECONDS * len(migrations) + number * (
        measured + _SECONDS_A_WRITE / _CONCURRENCY
    )
    return Load(
        objects=crd.objects,
        writes=number,
        list_pages=pages,
        conversions=number * max(served - 1, 0) * 2 + number,
        megabytes=round(crd.size / 1e6 * len(migrations), 1),
        seconds=round(seconds, 1),
        basis=(
            f"measured here: {measured * 1e3:.2f} ms per object",
            f"assumed: {_SECONDS_A_WRITE * 1e3:.0f} ms for a write on the cluster, "
            f"{_CONCURRENCY} at a time, {_SETTLE_SECONDS:.0f} s to settle",
        ),
    )
