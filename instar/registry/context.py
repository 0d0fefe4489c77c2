"""What every verb needs and no verb owns: the backend, the clock, chance, and house policies."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from instar.registry.backend import Backend

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_BASE = 58


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """RFC 3339, UTC, whole seconds: how every time in an object is written."""
    return _second(moment.replace(microsecond=0))


@lru_cache(maxsize=4)
def _second(moment: datetime) -> str:
    """Formatting costs more than most steps of a write, and a second has many writes."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Context:
    backend: Backend
    check_namespace: Callable[[str], None]
    """Raises when a namespace cannot take a new object."""
    now: Callable[[], datetime] = utc_now
    new_uid: Callable[[], str] = field(default=lambda: str(uuid.uuid4()))
    choose: Callable[[str, int], list[str]] = field(
        default=lambda alphabet, count: random.choices(alphabet, k=count)
    )

    def timestamp(self) -> str:
        return timestamp(self.now())

    def generated_name(self, base: str) -> str:
        return base[:_MAX_GENERATED_BASE] + "".join(self.choose(_SUFFIX_ALPHABET, 5))


@dataclass(frozen=True)
class WriteOptions:
    """The query of a write, checked; ``warn`` takes texts for ``Warning`` headers."""

    manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool = False
    warn: Callable[[str], None] = field(default=lambda text: None)
