"""Claims node ports among the servers of a store, so that no two give one port to two Services.

``service_addresses.py`` claims ports before it stores a Service; ``lifecycle/address_setup.py``
makes this where other processes write to the store. All claims are one record, which is replaced
only by a server that has read it. A claim counts for a minute: by then the Service is stored, and
every server knows its ports, or the request has failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from instar.base.errors import ServiceUnavailable
from instar.server.registry.stored.storage_errors import as_api_error, with_api_errors
from instar.wire.storage.store import Stale, Store, StoreError, Write

RECORD = "instar.dev/claims/node-ports"
_SECONDS = 60.0
_ATTEMPTS = 50


class NodePort(NamedTuple):
    """A port of every node, for one protocol."""

    protocol: str
    number: int


class PortClaim(NamedTuple):
    """A port that a Service is about to have."""

    place: NodePort
    owner: str
    """``namespace/name``."""
    until: float
    """Unix time."""
    after: int
    """The record's revision before the claim; the Service is stored later than that."""


Released = Callable[[PortClaim], bool]
"""Whether the claim's Service has had the port and given it up since."""


class NodePortClaims:
    """The record of claims."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    async def take(
        self, places: Iterable[NodePort], owner: str, released: Released
    ) -> dict[NodePort, str]:
        """Claim all of the ports for the Service, or none: return those that others have claimed,
        with their owners."""
        wanted = dict.fromkeys(places)
        for _ in range(_ATTEMPTS):
            claims, revision = await self._read()
            claims = [each for each in claims if not released(each)]
            refused = {
                each.place: each.owner
                for each in claims
                if each.place in wanted and each.owner != owner
            }
            if refused:
                return refused
            until = self._clock() + _SECONDS
            kept = [each for each in claims if each.place not in wanted]
            mine = [PortClaim(place, owner, until, revision) for place in wanted]
            if await self._replace([*kept, *mine], revision):
                return {}
        raise ServiceUnavailable("too many Services get node ports at once", retry_after=1)

    async def give_back(self, places: Iterable[NodePort], owner: str) -> None:
        """Drop the claims of a Service that was not stored. Where other servers write claims all
        the time they stay, and end by themselves."""
        gone = set(places)
        for _ in range(_ATTEMPTS):
            claims, revision = await self._read()
            kept = [each for each in claims if each.place not in gone or each.owner != owner]
            if len(kept) == len(claims) or await self._replace(kept, revision):
                return

    async def _read(self) -> tuple[list[PortClaim], int]:
        """Return the claims that still count, and the record's revision."""
        record = await with_api_errors(lambda: self._store.get(RECORD))
        if record is None:
            return [], 0
        now = self._clock()
        found = map(_claim_of, orjson.loads(record.value)["claims"])
        return [claim for claim in found if claim.until > now], record.revision

    async def _replace(self, claims: list[PortClaim], revision: int) -> bool:
        value = orjson.dumps({"claims": [[list(each.place), *each[1:]] for each in claims]}) + b"\n"
        try:
            await self._store.commit(Write(RECORD, value, revision))
        except Stale:
            return False
        except StoreError as error:
            raise as_api_error(error) from error
        return True


def _claim_of(item: list[Any]) -> PortClaim:
    [protocol, number], owner, until, after = item
    return PortClaim(NodePort(protocol, number), owner, until, after)
