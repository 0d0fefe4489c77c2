"""What cannot be told or brought back."""

from __future__ import annotations


class RestoreError(Exception):
    """One line for whoever asked."""
