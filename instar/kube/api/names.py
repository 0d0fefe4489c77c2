"""API identifiers (GroupVersion, GroupVersionKind, GroupResource) and the priority order of
versions.

Used by the registry, the discovery endpoints, the tools and most packages of ``kube``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cmp_to_key
from typing import NamedTuple

_KUBE_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII)
_STABILITY = {"alpha": 0, "beta": 1, None: 2}
_INT64_MAX = 2**63 - 1


class GroupVersion(NamedTuple):
    """An API version; the core group is the empty string and prints as the version alone."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupKind(NamedTuple):
    """A kind in any version; prints as ``Kind.group``."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


def parse_group_version(text: str) -> GroupVersion:
    """Parse ``apps/v1`` or ``v1``. More than one slash raises ``ValueError`` with upstream's
    text."""
    if text.count("/") > 1:
        raise ValueError(f"unexpected GroupVersion string: {text}")
    group, slash, version = text.rpartition("/")
    return GroupVersion(group if slash else "", version)


def compare_versions(left: str, right: str) -> int:
    """Compare two versions: positive when ``left`` has the higher priority (kube-aware order)."""
    if left == right:
        return 0
    a, b = _rank(left), _rank(right)
    if a is None and b is None:
        return 1 if left < right else -1
    if a is None:
        return -1
    if b is None:
        return 1
    return (a > b) - (a < b)


def by_priority(versions: Iterable[str]) -> list[str]:
    """Sort versions, highest priority first: ``v10, v2, v1, v11beta2, v10beta3, …, foo1,
    foo10``."""
    return sorted(versions, key=cmp_to_key(compare_versions), reverse=True)


def _rank(version: str) -> tuple[int, int, int] | None:
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return None
    major, stability, minor = match.groups()
    numbers = (int(major), int(minor or 0))
    if max(numbers) > _INT64_MAX:
        return None
    return (_STABILITY[stability], *numbers)
