"""Access record: which requests were allowed per user since this process started.

Written by the authorizer for each request, served as ``/instar/access`` by
``server/endpoints/insight.py``. The record is bounded: when it is full, the least recently seen
line is dropped, and the document says since when it is complete. Object names are not recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from instar.kube.access.attributes import OURSELVES, Attributes
from instar.server.registry.insight.usage import moment_text

MOST_LINES = 20_000
"""Recorded lines; beyond this number the least recently seen one is dropped."""
_LONGEST = 512
"""Maximum length of a recorded line; longer ones are not typical use."""


class AccessRecord:
    """Counts allowed requests per user, verb and resource."""

    def __init__(
        self, *, of_several: bool, clock: Callable[[], float] = time.time, most: int = MOST_LINES
    ) -> None:
        """``of_several``: whether other processes serve the same port with records of their own."""
        self._of_several = of_several
        self._clock = clock
        self._most = most
        self._since = clock()
        self._seen: dict[tuple[str, ...], list[float]] = {}

    def note(self, asked: Attributes) -> None:
        """Record one request, in plain tuples and lists for speed."""
        user, verb, group, _, resource, subresource, namespace, _, path, *_ = asked
        where = namespace if resource else path
        key = (user.name, verb, group, resource, subresource, where)
        seen = self._seen.get(key)
        if seen is not None:
            seen[0] += 1
            seen[2] = self._clock()
        elif user is not OURSELVES.user and sum(map(len, key)) < _LONGEST:
            self._add(key)

    def _add(self, key: tuple[str, ...]) -> None:
        now = self._clock()
        if len(self._seen) >= self._most:
            recent = sorted(self._seen.items(), key=lambda item: item[1][2])
            forgotten = len(recent) // 2
            self._since = recent[forgotten - 1][1][2]
            self._seen = dict(recent[forgotten:])
        self._seen[key] = [1, now, now]

    def document(self, user: str) -> dict[str, Any]:
        """Return the body of ``/instar/access``; an empty user means all."""
        lines = [_line(key, seen) for key, seen in self._seen.items() if not user or key[0] == user]
        return {
            "since": moment_text(self._since),
            "ofSeveralProcesses": self._of_several,
            "uses": lines,
        }


def _line(key: tuple[str, ...], seen: list[float]) -> dict[str, Any]:
    user, verb, group, resource, subresource, where = key
    number, first, last = seen
    line: dict[str, Any] = {"user": user, "verb": verb}
    if resource:
        line |= {
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": where,
        }
    else:
        line["path"] = where
    return {**line, "count": int(number), "first": moment_text(first), "last": moment_text(last)}
