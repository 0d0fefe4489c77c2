"""Errors of snapshots: a source that cannot be read at all, or a capture that was interrupted.

Raised by the modules of this package; the commands print them as one line. A source that can be
read in part is not an error: ``CapturedCluster.problems`` lists what is missing.
"""

from __future__ import annotations


class SnapshotError(Exception):
    """``str()`` is one line with the file and the error."""


class Interrupted(SnapshotError):
    """An interrupted capture that can be resumed."""
