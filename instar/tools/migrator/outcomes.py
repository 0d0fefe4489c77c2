"""What became of one object, and what to tell whoever has to mend it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from instar.base.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Invalid,
    RequestTooLarge,
    Unauthorized,
)
from instar.base.fast_dataclass import dataclass
from instar.tools.migrator.listed_object import ListedObject


class Fate(StrEnum):
    PENDING = "pending"
    REWRITTEN = "rewritten"
    """It was stale: the write gave it a new resourceVersion."""
    CURRENT = "current"
    """The write changed nothing: it was stored as the storage version writes it."""
    OVERTAKEN = "overtaken"
    """Others write it faster than we can; whether that proves anything is asked at the end."""
    GONE = "gone"
    """A read says so."""
    WOULD_PASS = "would-pass"
    """Dry run."""
    DEFERRED = "deferred"
    """Server or webhook did not answer; the object may be fine, and is tried again at the end."""
    FAILED = "failed"
    DIFFERS = "differs"
    """Rewriting changed its content, or who owns it."""


DONE = frozenset({Fate.REWRITTEN, Fate.CURRENT, Fate.OVERTAKEN, Fate.GONE})
WRITTEN = frozenset({Fate.REWRITTEN, Fate.CURRENT})

NAMESPACE_GONE = "NamespaceGone"
UNWRITABLE = "ReadableNotWritable"
CONTENT_CHANGED = "ContentChanged"
OWNERSHIP_LOST = "OwnershipLost"
VETO = "PolicyVeto"


@dataclass(frozen=True, slots=True)
class ObjectResult:
    key: str
    fate: Fate
    revision: str = ""
    """The resourceVersion after the write."""
    reason: str = ""
    message: str = ""
    outage: bool = False
    """It failed, but not because of the object: trying later may help."""
    reading: ListedObject | None = None
    """What it was compared with, where that is newer than the first reading."""
    restored: bool = False
    """The server had dropped who owns what, and was given it back."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An object that needs a person."""

    key: str
    reason: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Commands:
    """What to type, for the object at hand."""

    edit: str
    delete: str
    namespace: str
    accept: str


def failed(key: str, error: ApiError) -> ObjectResult:
    reason = error.reason or f"HTTP {error.code}"
    if error.reason == Invalid.reason and not _names_fields(error):
        # Schemas complain about fields; a policy has nothing but its own words.
        reason = VETO
    fate = Fate.DEFERRED if error.retryable else Fate.FAILED
    return ObjectResult(key, fate, reason=reason, message=error.message, outage=error.retryable)


def unwritable(key: str, error: ApiError) -> ObjectResult:
    """The write says "not found" of an object that can be read."""
    details = error.details or {}
    reason = NAMESPACE_GONE if details.get("kind") == "namespaces" else UNWRITABLE
    return ObjectResult(key, Fate.FAILED, reason=reason, message=error.message)


def differs(key: str, revision: str, where: str, what: Iterable[str] = ()) -> ObjectResult:
    shown = "; ".join(what)
    text = f"content is not the same as before at {where}{f': {shown}' if shown else ''}"
    return ObjectResult(key, Fate.DIFFERS, revision=revision, reason=CONTENT_CHANGED, message=text)


def dispossessed(key: str, revision: str, owners: Iterable[str]) -> ObjectResult:
    text = f"field ownership was lost: {'; '.join(owners)}"
    return ObjectResult(key, Fate.DIFFERS, revision=revision, reason=OWNERSHIP_LOST, message=text)


def suggestion(reason: str, message: str, commands: Commands) -> str:
    """What to do about it."""
    lowered = message.lower()
    if reason == NAMESPACE_GONE:
        return (
            "its namespace is gone, but the object is still stored: create the namespace again "
            f"({commands.namespace}) and run again, or delete the object ({commands.delete}; if "
            "it cannot be read, with ignoreStoreReadErrorWithClusterBreakingPotential)"
        )
    if reason == UNWRITABLE:
        return f"it can be read but not written; look at it ({commands.edit}), or delete it"
    if reason == VETO:
        return "the admission policy must let an unchanged object pass (mend or unbind it)"
    if reason == Invalid.reason:
        return f"make the object valid ({commands.edit}), or relax the schema, then run again"
    if reason == CONTENT_CHANGED:
        return (
            "a conversion or a mutating admission webhook changes objects on a write that "
            "changes nothing; mend it, restore this object, then run again; or take the object "
            f"as it is now: {commands.accept}"
        )
    if reason == OWNERSHIP_LOST:
        return (
            "apply the object once more with each of its managers, then take it as it is: "
            f"{commands.accept}"
        )
    if reason == RequestTooLarge.reason or "too large" in lowered:
        return f"make the object smaller ({commands.edit}), for example by dropping annotations"
    if "conversion webhook" in lowered or "conversion from" in lowered:
        return "mend the conversion webhook for this object (instar check finds such objects)"
    if "admission webhook" in lowered:
        return "the admission webhook must let an unchanged object pass; or try --via-status"
    if reason in (Forbidden.reason, Unauthorized.reason):
        return "ask for the permissions that instar migrate --plan lists"
    if reason == BadRequest.reason:
        return f"look at the object ({commands.edit}); the server cannot read what is stored"
    return "run again later; what was done is kept"


def _names_fields(error: ApiError) -> bool:
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("field") for cause in causes) or not causes
