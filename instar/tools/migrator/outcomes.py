"""The outcome of one object in a migration, and the fix that a report suggests. Pure.

Made by ``rewrite_checks/rewrite_checker.py``, the writer and the verification; kept in the progress
file.
"""

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
    """What became of one object in a pass."""

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
    """Server or webhook did not answer, or owners were lost; it is tried again at the end."""
    FAILED = "failed"
    DIFFERS = "differs"
    """Rewriting changed its content or its field owners."""
    REFUSED = "refused"
    """Rewriting would change its content, so it was not written."""


DONE = frozenset({Fate.REWRITTEN, Fate.CURRENT, Fate.OVERTAKEN, Fate.GONE})
WRITTEN = frozenset({Fate.REWRITTEN, Fate.CURRENT})
TROUBLED = (Fate.FAILED, Fate.DIFFERS, Fate.REFUSED)
"""Objects that a person has to look at."""

NAMESPACE_GONE = "NamespaceGone"
UNWRITABLE = "ReadableNotWritable"
CONTENT_CHANGED = "ContentChanged"
WOULD_CHANGE = "WouldChange"
UNREACHABLE = "ListedNotFound"
UNDECODABLE = "Undecodable"
OWNERSHIP_LOST = "OwnershipLost"
UNPROVEN = "UnreadableVersion"
VETO = "PolicyVeto"


@dataclass(frozen=True, slots=True)
class ObjectResult:
    """What became of one object."""

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
    """The server had dropped field owners, and they were written again."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An object that was not migrated and needs action by the user."""

    key: str
    reason: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that a report suggests for an object."""

    edit: str
    delete: str
    namespace: str
    accept: str
    key: str = ""
    """``namespace/name``, the end of its key in etcd."""


def failed(key: str, error: ApiError) -> ObjectResult:
    reason = error.reason or f"HTTP {error.code}"
    if error.reason == Invalid.reason and not _names_fields(error):
        # Schemas complain about fields; a policy has nothing but its own words.
        reason = VETO
    fate = Fate.DEFERRED if error.retryable else Fate.FAILED
    return ObjectResult(key, fate, reason=reason, message=error.message, outage=error.retryable)


def unwritable(key: str, error: ApiError) -> ObjectResult:
    """Return the outcome of an object that can be read, but whose write fails with "not found"."""
    details = error.details or {}
    reason = NAMESPACE_GONE if details.get("kind") == "namespaces" else UNWRITABLE
    return ObjectResult(key, Fate.FAILED, reason=reason, message=error.message)


def differs(
    key: str, revision: str, where: str, what: Iterable[str] = (), why: str = ""
) -> ObjectResult:
    """Return the outcome of an object that a rewrite changed. ``why`` is the cause."""
    shown = "; ".join(what)
    text = f"content is not the same as before at {where}{f': {shown}' if shown else ''}"
    text += f" ({why})" if why else ""
    return ObjectResult(key, Fate.DIFFERS, revision=revision, reason=CONTENT_CHANGED, message=text)


def refused(key: str, revision: str, text: str) -> ObjectResult:
    """Return the outcome of an object that was not written, because the write would change it."""
    return ObjectResult(
        key,
        Fate.REFUSED,
        revision=revision,
        reason=WOULD_CHANGE,
        message=f"a rewrite would change it, so it was not written: {text}",
    )


def unproven(key: str, revision: str, versions: Iterable[str]) -> ObjectResult:
    """Return the outcome of an object that cannot be read at some served version now, so that the
    effect at that version cannot be compared; it is tried again at the end.
    """
    text = (
        f"it cannot be read at {', '.join(versions)} now, so nothing proves that a rewrite keeps "
        "what is shown there; it was not written"
    )
    return ObjectResult(key, Fate.DEFERRED, revision, UNPROVEN, text, outage=True)


def unreachable(key: str, why: str) -> ObjectResult:
    """Return the outcome of an object that is in lists but is not found by its name."""
    return ObjectResult(key, Fate.FAILED, reason=UNREACHABLE, message=why)


def dispossessed(key: str, revision: str, owners: Iterable[str], *, again: bool) -> ObjectResult:
    """Return the outcome of an object that lost field owners; ``again``: write them again after all
    other objects.
    """
    text = f"field ownership was lost: {'; '.join(owners)}"
    fate = Fate.DEFERRED if again else Fate.DIFFERS
    return ObjectResult(key, fate, revision=revision, reason=OWNERSHIP_LOST, message=text)


def suggestion(reason: str, message: str, commands: Commands) -> str:
    """Return the fix that a report suggests."""
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
    if reason == WOULD_CHANGE:
        return (
            "add the field to the storage version's schema or mend the conversion, then run "
            f"again; or accept the change of the path (--accept-change PATH) or of this object "
            f"({commands.accept})"
        )
    if reason == UNPROVEN:
        return (
            "mend the conversion to that version, or stop serving the version, then run again; or "
            f"let a rewrite change this object ({commands.accept})"
        )
    if reason == UNREACHABLE:
        return (
            "its key in etcd and its metadata differ; compare them (instar census --storage "
            "etcd://…), then write it again under its own name or delete the key in etcd"
        )
    if reason == UNDECODABLE:
        return (
            "put the version that it is stored in back into the CRD, or mend or delete its value "
            f"in etcd (key …/{commands.key}); with the feature gate "
            "AllowUnsafeMalformedObjectDeletion: kubectl delete with "
            "ignoreStoreReadErrorWithClusterBreakingPotential"
        )
    if reason == CONTENT_CHANGED:
        return (
            "mend what changed it, then run again; or take the object as it is now: "
            f"{commands.accept}"
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
