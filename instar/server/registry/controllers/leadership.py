"""Leader election among servers on one store, by a Lease.

``lifecycle/controller_setup.py`` creates it. Controllers that must run once per cluster register
with ``on_elected``. A server that does not share its store is the leader at once. Expiry is
measured from when a renewal was seen, by the local clock, so clock skew between servers does not
matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import Enum, auto
from time import monotonic

from instar.base import errors
from instar.base.json_values import Object
from instar.base.supervision import SupervisedTask, rest
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
_LEADERLESS_SECONDS = 60.0
"""After this time without a known leader ``/readyz`` shows it."""
_OPTIONS = WriteOptions(manager="instar", field_validation="Ignore")
_RULES = UpdateRules(unconditional=False, uid_is_precondition=False)

Elected = Callable[[], Awaitable[None]]


class StoreSharing(Enum):
    """Which other processes use the store."""

    ALONE = auto()
    EQUALS = auto()
    LENDER = auto()
    """A worker: the first process, which shares the store, is the leader."""


class Leadership:
    """This server's part in the election."""

    def __init__(
        self, context: Context, leases: Resource, identity: str, *, company: StoreSharing
    ) -> None:
        self._context = context
        self._leases = leases
        self._identity = identity
        self.company = company
        self._leads = False
        self._elected: list[Elected] = []
        self._seen: tuple[int, float] = (0, 0.0)
        """The lease's last revision, and the local time at which it was seen."""
        self._kept: SupervisedTask | None = None
        self._electing: SupervisedTask | None = None
        self._certain = 0.0
        """The local time at which a leader was last known, this server or another."""

    @property
    def leads(self) -> bool:
        return self._leads

    def on_elected(self, elected: Elected) -> None:
        """Register ``elected``, called whenever this server becomes the leader."""
        self._elected.append(elected)

    async def start(self) -> None:
        if self.company is StoreSharing.ALONE:
            await self._lead()
        if self.company is not StoreSharing.EQUALS:
            return
        self._certain = monotonic()
        self._context.supervision.watch("leader", self._trouble)
        self._kept = self._context.supervision.keep("leadership", self._compete)

    async def stop(self) -> None:
        self._leads = False
        for kept in (self._kept, self._electing):
            if kept is not None:
                await kept.stop()

    def _trouble(self) -> str | None:
        """Return that no server leads: then controllers run nowhere."""
        unknown = monotonic() - self._certain
        return "no server leads the controllers" if unknown > _LEADERLESS_SECONDS else None

    async def _compete(self) -> None:
        while True:
            try:
                holds = await self._hold()
                self._certain = monotonic()
                if holds and not self._leads:
                    log.info("elected as leader, running the controllers as %s", self._identity)
                    await self._begin_to_lead()
            except (errors.ApiError, StoreError) as error:
                log.debug("this server does not lead by %s/%s: %s", NAMESPACE, NAME, error)
                holds = False
            except Exception:
                self._leads = False  # its lease is not renewed until it competes again
                raise
            self._leads = holds
            await rest(_RENEW_SECONDS)

    async def _begin_to_lead(self) -> None:
        """Start the controllers in a task: the lease is renewed while they look at all objects."""
        if self._electing is not None:
            await self._electing.stop()
        self._leads = True
        self._electing = self._context.supervision.keep("elected-controllers", self._tell_elected)

    async def _lead(self) -> None:
        self._leads = True
        await self._tell_elected()

    async def _tell_elected(self) -> None:
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
