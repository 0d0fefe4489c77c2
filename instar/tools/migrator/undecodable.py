"""Finds the keys of stored objects that the API server cannot read, so that lists can skip them.

Called by ``object_pages.py`` when not even a page of one object can be listed at any served
version: the object is stored in a version that is not in the CRD, or its bytes are not JSON. Such
an object fails every list that contains it, and the server does not say its name. A search with
lists of one object that begin at chosen keys finds the key character by character.

A continue token contains the key at which a list begins. The format is kube-apiserver's: base64 of
JSON with the key and a revision, where -1 means the latest revision.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator

import orjson

from instar.base.fast_dataclass import dataclass

_TOKEN_VERSION = "meta.k8s.io/v1"
_ALPHABET = "-./0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_KEY_LENGTH = 320
"""Characters of the longest namespace and name together."""

Probe = Callable[[str], Awaitable[bool]]
"""Whether a list of one object that begins at a key succeeds."""


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object that the API server cannot read at any version."""

    key: str
    """``namespace/name``, or the name alone."""
    after: str
    """The key of the last object before it that could be read; empty when it is the first."""

    @property
    def token(self) -> str:
        """Return the continue token of the list that starts after it."""
        return token_at(f"{self.key}\0")


def token_at(start: str) -> str:
    """Return the continue token of a list at the latest revision that starts at a key."""
    document = orjson.dumps({"v": _TOKEN_VERSION, "rv": -1, "start": start})
    return base64.urlsafe_b64encode(document).rstrip(b"=").decode()


def start_of(token: str) -> str | None:
    """Return the key at which a token's list starts; None for a token of another format."""
    if not token:
        return ""
    try:
        document = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(document, dict) or document.get("v") != _TOKEN_VERSION:
        return None
    start = document.get("start")
    return start if isinstance(start, str) else None


async def find_undecodable(start: str, probe: Probe) -> UndecodableObject | None:
    """Return the object at which lists from ``start`` fail; None if they fail for another reason,
    or if the key has characters that are not allowed in names.

    Of several such objects in a row the last one is found.
    """
    if not await probe("~") or not await _any_works(probe):
        return None
    below = start.rstrip("\0")
    found = start
    for candidate in _upwards(below):
        if await probe(candidate):
            break
        found = candidate
    key = await _narrowed(found, probe)
    return None if key is None else UndecodableObject(key, below)


async def _any_works(probe: Probe) -> bool:
    """Return whether some list succeeds that starts before the end."""
    for character in _ALPHABET:
        if await probe(character):
            return True
    return False


def _upwards(below: str) -> Iterator[str]:
    """Yield greater keys in order, those with the longest common prefix first."""
    for length in range(len(below), -1, -1):
        next_one = below[length : length + 1]
        for character in _ALPHABET:
            if character > next_one:
                yield below[:length] + character


async def _narrowed(prefix: str, probe: Probe) -> str | None:
    """Return the key with a prefix at which lists fail and after which they succeed."""
    prefix = prefix.rstrip("\0")
    while len(prefix) < _MAX_KEY_LENGTH:
        if prefix and await probe(f"{prefix}\0"):
            return prefix
        last = ""
        for character in _ALPHABET:
            if await probe(prefix + character):
                break
            last = character
        if not last:
            return None
        prefix += last
    return None
