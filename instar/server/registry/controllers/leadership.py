"""Leader election among servers on one store, by a Lease.

Controllers that must run once per cluster register with ``on_elected``. A server that has its store
to itself leads at once. Expiry is measured from when a renewal was seen, by the local clock, so
clock skew between servers does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import Enum, auto

from instar.base import errors
from instar.base.json_values import Object
from instar.base.supervision import KeptTask
from instar.base.times import micro_time_text
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.write import create, update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules
from instar.wire.storage.store import StoreError

log = logging.getLogger(__name__)
NAMESPACE, NAME = "kube-system", "instar-controllers"
DURATION = 15.0
_RENEW_SECONDS = 5.0
_OPTIONS = WriteOptions(manager="instar", field_validation="Ignore")
_RULES = UpdateRules(unconditional=False, uid_is_precondition=False)

Elected = Callable[[], Awaitable[None]]


class Company(Enum):
    """Which other processes use the store."""

    ALONE = auto()
    EQUALS = auto()
    LENDER = auto()
    """A worker: the first process, which shares the store, is the leader."""


class Leadership:
    """This server's part in the election."""

    def __init__(
        self, context: Context, leases: Resource, identity: str, *, company: Company
    ) -> None:
        self._context = context
        self._leases = leases
        self._identity = identity
        self.company = company
        self._leads = False
        self._elected: list[Elected] = []
        self._seen: tuple[int, float] = (0, 0.0)
        """The lease's last revision, and the local time at which it was seen."""
        self._kept: KeptTask | None = None

    @property
    def leads(self) -> bool:
        return self._leads

    def on_elected(self, elected: Elected) -> None:
        """Register ``elected``, called whenever this server becomes the leader."""
        self._elected.append(elected)

    async def start(self) -> None:
        if self.company is Company.ALONE:
            await self._lead()
        if self.company is not Company.EQUALS:
            return
        self._kept = self._context.supervision.keep("leadership", self._compete)

    async def stop(self) -> None:
        self._leads = False
        if self._kept is not None:
            await self._kept.stop()

    async def _compete(self) -> None:
        while True:
            try:
                holds = await self._hold()
                if holds and not self._leads:
                    log.info("elected as leader, running the controllers as %s", self._identity)
                    await self._lead()
            except (errors.ApiError, StoreError) as error:
                log.debug("this server does not lead by %s/%s: %s", NAMESPACE, NAME, error)
                holds = False
            except Exception:
                self._leads = False  # its lease is not renewed until it competes again
                raise
            self._leads = holds
            await asyncio.sleep(_RENEW_SECONDS)

    async def _lead(self) -> None:
        self._leads = True
        for elected in self._elected:
            await elected()

    async def _hold(self) -> bool:
        """Take or renew the lease; return False while another server holds it."""
        await self._context.backend.consistent()
        entry = self._leases.objects.entries.get(f"{NAMESPACE}/{NAME}")
        if entry is None:
            await create(self._context, self._target(), self._lease(), _OPTIONS)
            return True
        holder = (entry.decode().get("spec") or {}).get("holderIdentity")
        if holder not in (self._identity, "", None) and not self._expired(entry):
            return False
        await update(self._context, self._target(NAME), self._renewed(entry), _OPTIONS, _RULES)
        return True

    def _expired(self, entry: CacheEntry) -> bool:
        now = asyncio.get_running_loop().time()
        revision, since = self._seen
        if entry.revision != revision:
            self._seen = (entry.revision, now)
            return False
        return now - since > DURATION

    def _renewed(self, seen: CacheEntry) -> Callable[[Object, CacheEntry], Awaitable[Proposal]]:
        async def propose(old: Object, entry: CacheEntry) -> Proposal:
            if entry.revision != seen.revision:
                raise errors.Conflict("another server was faster")
            return Proposal({**old, "spec": self._lease()["spec"]})

        return propose

    def _lease(self) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(DURATION),
                "renewTime": micro_time(self._context.now()),
            },
        }

    def _target(self, name: str = "") -> Target:
        serving = self._leases.serving
        codec = self._leases.codec
        return Target(self._leases, serving, codec, serving.storage, NAMESPACE, name)


def micro_time(moment: datetime) -> str:
    """Format a MicroTime as Leases and Events have it: UTC, six decimals."""
    return micro_time_text(moment)
