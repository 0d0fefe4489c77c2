"""Numbers in sentences: the one place that knows that one object is no objects."""

from __future__ import annotations


def counted(number: int | str, noun: str) -> str:
    """``1 object``, ``2 objects``; a text is a number that is known roughly."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"
