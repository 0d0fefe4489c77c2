"""Error that stops a move; ``cli/commands/adopt`` prints it as one line."""

from __future__ import annotations


class AdoptError(Exception):
    """The move stops here; ``str()`` says why, and what to do."""
