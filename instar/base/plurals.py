"""Counts with singular or plural nouns, for messages and reports.

Called by the CLI commands and the tools' report renderers.
"""

from __future__ import annotations


def counted(number: int | str, noun: str) -> str:
    """Return ``1 object``, ``2 objects``; ``number`` may be a text such as ``about 3``."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"
