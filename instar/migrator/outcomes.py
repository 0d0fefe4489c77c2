"""What became of one object, and what to tell whoever has to mend it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from instar.errors import ApiError, BadRequest, Forbidden, Invalid, RequestTooLarge, Unauthorized


class Fate(StrEnum):
    PENDING = "pending"
    REWRITTEN = "rewritten"
    """It was stale: the write gave it a new resourceVersion."""
    CURRENT = "current"
    """The write changed nothing: it was stored as the storage version writes it."""
    OVERTAKEN = "overtaken"
    """Somebody else wrote it meanwhile, and with that at the storage version."""
    GONE = "gone"
    WOULD_PASS = "would-pass"
    """Dry run."""
    FAILED = "failed"
    DIFFERS = "differs"
    """Rewriting changed its content."""


DONE = frozenset({Fate.REWRITTEN, Fate.CURRENT, Fate.OVERTAKEN, Fate.GONE})


@dataclass(frozen=True, slots=True)
class Outcome:
    key: str
    fate: Fate
    revision: str = ""
    """The resourceVersion after the write."""
    reason: str = ""
    message: str = ""
    outage: bool = False
    """It failed, but not because of the object: trying later may help."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An object that needs a person."""

    key: str
    reason: str
    message: str
    fix: str


def failed(key: str, error: ApiError) -> Outcome:
    reason = error.reason or f"HTTP {error.code}"
    return Outcome(key, Fate.FAILED, reason=reason, message=error.message, outage=error.retryable)


def differs(key: str, revision: str, versions: str) -> Outcome:
    text = f"content is not the same as before at {versions}"
    return Outcome(key, Fate.DIFFERS, revision=revision, reason="ContentChanged", message=text)


def suggestion(reason: str, message: str, command: str) -> str:
    """What to do about it; ``command`` edits the object."""
    lowered = message.lower()
    if reason == Invalid.reason:
        return f"make the object valid ({command}), or relax the schema, then run again"
    if reason == "ContentChanged":
        return (
            "a conversion or a mutating admission webhook changes objects on a write that "
            "changes nothing; mend it, restore this object, then run again (to accept the "
            "change, delete the progress file)"
        )
    if reason == RequestTooLarge.reason or "too large" in lowered:
        return f"make the object smaller ({command}), for example by dropping annotations"
    if "conversion webhook" in lowered or "conversion from" in lowered:
        return "mend the conversion webhook for this object (instar check finds such objects)"
    if "admission webhook" in lowered:
        return "the admission webhook must let an unchanged object pass; or try --via-status"
    if reason in (Forbidden.reason, Unauthorized.reason):
        return "ask for the permissions that instar migrate --dry-run lists"
    if reason == BadRequest.reason:
        return f"look at the object ({command}); the server cannot read what is stored"
    return "run again later; what was done is kept"
