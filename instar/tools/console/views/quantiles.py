"""Quantiles from histograms, estimated like Prometheus: linear within a bucket.

Used by ``versions.py`` and ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence


def quantile(bounds: Sequence[float], counts: Sequence[int], part: float) -> float | None:
    """Return the quantile; None without data. Values above the last bound count as that bound."""
    total = sum(counts)
    if not total or not bounds:
        return None
    wanted, seen, lower = part * total, 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count and seen + count >= wanted:
            return lower + (bound - lower) * (wanted - seen) / count
        seen += count
        lower = bound
    return float(bounds[-1])
