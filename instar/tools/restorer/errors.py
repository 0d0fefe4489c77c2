"""The error of ``instar history`` and ``instar restore``.

Raised by the modules of this package; the commands print it as one line.
"""

from __future__ import annotations


class RestoreError(Exception):
    """A past state cannot be read or restored; the message is one line for the user."""
