"""Errors of snapshots: a source that cannot be read at all, or a capture that was interrupted.

What can be read in part is a problem of the ``World``, not an error.
"""

from __future__ import annotations


class SnapshotError(Exception):
    """``str()`` says in one line what is wrong with which file."""


class Interrupted(SnapshotError):
    """An interrupted capture that can be resumed."""
