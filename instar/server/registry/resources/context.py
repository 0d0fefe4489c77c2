"""Dependencies of the verbs (backend, authorizer, admission, clock, uids) and the options of a
write.

``server/lifecycle/composition.py`` makes one ``Context`` per server and passes it to every verb;
``server/rest/options.py`` makes ``WriteOptions`` per request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from math import inf
from random import random
from time import time
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.supervision import Supervision
from instar.kube.access.attributes import OURSELVES, Attributes
from instar.kube.access.authorizers import AlwaysAllow, Authorizer
from instar.kube.admission.admission_request import options_document
from instar.kube.schema.metadata.rules import MAX_GENERATED_BASE
from instar.server.registry.resources.admission import AdmissionChain, Verb
from instar.server.registry.stored.backend import Backend

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_PAIRS = [one + other for one in _SUFFIX_ALPHABET for other in _SUFFIX_ALPHABET]
_SUFFIXES = len(_PAIRS) ** 2 * len(_SUFFIX_ALPHABET)
_UIDS_AT_ONCE = 256


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Format a time as in every Kubernetes object: RFC 3339, UTC, whole seconds."""
    return moment.isoformat(timespec="seconds")[:19] + "Z"


class Uids:
    """Generates random (version 4) UUIDs. Reads random bytes for many at once: one system call per
    UUID, and the standard library's class, would take a fiftieth of a write."""

    def __init__(self) -> None:
        self._pool: Iterator[str] = iter(())

    def __call__(self) -> str:
        digits = next(self._pool, "")
        if not digits:
            chance = os.urandom(16 * _UIDS_AT_ONCE).hex()
            self._pool = iter([chance[at : at + 32] for at in range(0, len(chance), 32)])
            digits = next(self._pool)
        variant = "89ab"[int(digits[16], 16) & 3]
        return (
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
        )


class _Clock:
    """Formats the current time once per second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def text(self) -> str:
        second = int(time())
        if second != self._second:
            self._second, self._text = second, timestamp(datetime.fromtimestamp(second, UTC))
        return self._text


@dataclass(frozen=True)
class Context:
    """What every verb needs and no verb owns."""

    backend: Backend
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    admission: AdmissionChain = field(default_factory=AdmissionChain)
    rescue_deletes: bool = False
    """Whether an object that cannot be converted may be deleted."""
    watch_list: bool = True
    """Whether watches may ask for initial events (the feature gate WatchList)."""
    supervision: Supervision = field(default_factory=Supervision)
    """Restarts background tasks that fail."""
    now: Callable[[], datetime] = utc_now
    new_uid: Callable[[], str] = field(default_factory=Uids)
    _clock: _Clock = field(default_factory=_Clock, init=False, repr=False)

    def timestamp(self) -> str:
        return self._clock.text() if self.now is utc_now else timestamp(self.now())

    def generated_name(self, base: str) -> str:
        return base[:MAX_GENERATED_BASE] + _suffix(int(random() * _SUFFIXES))


def _suffix(chance: int) -> str:
    """Return five characters of a generated name; made of pairs, which is three times as fast."""
    rest, first = divmod(chance, len(_PAIRS))
    last, second = divmod(rest, len(_PAIRS))
    return _PAIRS[first] + _PAIRS[second] + _SUFFIX_ALPHABET[last]


@dataclass(slots=True)
class WriteOptions:
    """The query of a write, validated; ``warn`` takes texts for ``Warning`` headers. Never changed;
    it is not frozen because that would cost each write a microsecond."""

    manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool = False
    asked: Attributes = OURSELVES
    size: int = 0
    """Bytes of the request body, the base of the cost for ``offload.run``."""
    warn: Callable[[str], None] = field(default=lambda text: None)
    annotate: Callable[[str, str], None] = field(default=lambda key, value: None)
    """Adds an audit annotation."""
    seconds_left: Callable[[], float] = field(default=lambda: inf)
    """Returns the seconds until the request's deadline."""
    named_manager: str = ""
    """``manager`` if the client sent one."""
    named_validation: str = ""
    given: Callable[[], Any] | None = None
    """Returns the object of the request body as it was sent, for error messages that quote it."""

    def document(self, verb: Verb) -> Object:
        """Return the options for admission; a patch is an update or a create there."""
        return options_document(
            "CreateOptions" if verb is Verb.CREATE else "UpdateOptions",
            dryRun=["All"] if self.dry_run else None,
            fieldManager=self.named_manager,
            fieldValidation=self.named_validation,
        )
