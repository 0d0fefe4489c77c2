"""Why a source cannot be read at all. What is readable in part is a problem, not this."""

from __future__ import annotations


class SnapshotError(Exception):
    """``str()`` says in one line what is wrong with which file."""


class Interrupted(SnapshotError):
    """A snapshot that can be gone on with."""
