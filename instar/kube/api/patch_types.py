"""Patch types and their media types.

Used by content negotiation (``server/rest``), the patch readers (``kube/patches``) and OpenAPI.
"""

from __future__ import annotations

from enum import StrEnum


class PatchType(StrEnum):
    """A patch format; the value is its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    APPLY_CBOR = "application/apply-patch+cbor"

    @property
    def applies(self) -> bool:
        """Whether it is a server-side apply."""
        return self in (PatchType.APPLY, PatchType.APPLY_CBOR)


OF_CUSTOM = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)
"""Types for custom resources, which have no Go types with merge keys for strategic patches."""
OF_BUILTIN = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY)
"""Types for built-in kinds."""
