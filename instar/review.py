"""Public API of the reviewer: ``instar.review.review(old, new) -> Report``."""

from __future__ import annotations

from instar.tools.reviewer.engine import ReviewOptions as Options
from instar.tools.reviewer.report import Effect, Finding, Hit, Report, Severity, Witness
from instar.tools.reviewer.reviewing import breaking, review

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
