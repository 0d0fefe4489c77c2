"""The reviewer as a library: ``instar.review.review(old, new) -> Report``."""

from __future__ import annotations

from instar.reviewer.engine import Options
from instar.reviewer.report import Effect, Finding, Hit, Report, Severity, Witness
from instar.reviewer.reviewing import breaking, review

__all__ = [
    "Effect",
    "Finding",
    "Hit",
    "Options",
    "Report",
    "Severity",
    "Witness",
    "breaking",
    "review",
]
