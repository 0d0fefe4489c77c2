"""The ways a change can be written down, listed once for server, documents and clients."""

from __future__ import annotations

from enum import StrEnum


class PatchType(StrEnum):
    """The value is the media type it travels as."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


OF_CUSTOM = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)
"""Custom resources have no Go types, so nobody can say which of their lists merge."""
OF_BUILTIN = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY)
