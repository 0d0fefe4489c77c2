"""Identity Lease of this API server (``apiserver-<hash>``), renewed while it runs; once an hour the
Leases of API servers that renewed theirs no more are deleted.

Started by ``controller.py``. It also names the server's address, for ``server_endpoints.py``.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from socket import gethostname

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.base.supervision import SupervisedTask, rest
from instar.server.registry.controllers.bootstrap.server_endpoints import with_renewal
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.leadership import micro_time
from instar.server.registry.resources.context import Context
from instar.wire.storage.store import Stale
from instar.wire.webhooks.resolver import HostPort

log = logging.getLogger(__name__)
_RENEW_SECONDS = 10.0
_COLLECT_EVERY = timedelta(hours=1)
_IDENTITY = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
_DURATION_SECONDS = 3600
_NAME_LENGTH = 26


def is_expired(lease: Object, now: datetime) -> bool:
    """Whether a Lease was not renewed for its duration; one that does not say so counts, too."""
    spec = lease.get("spec") or {}
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    if renewed is None or seconds is None:
        return True
    return now - datetime.fromisoformat(renewed) > timedelta(seconds=seconds)


class ServerLease:
    """Creates and renews the Lease."""

    def __init__(self, context: Context, maker: BootstrapWriter, host: str = "") -> None:
        """``host`` names the machine; a server restarted on it takes over its Lease."""
        self._context, self._maker = context, maker
        self._host = host or gethostname()
        digest = base64.b32encode(hashlib.sha256(self._host.encode()).digest()).decode().lower()
        self._name = f"apiserver-{digest[:_NAME_LENGTH]}"
        self._holder = f"{self._name}_{context.new_uid()}"
        self._address: HostPort | None = None
        self._kept: SupervisedTask | None = None
        self._collects_at = datetime.min.replace(tzinfo=UTC)

    def start(self, address: HostPort | None) -> None:
        """Renew the Lease from now on. ``address``: where other machines reach this server."""
        self._address = address
        self._kept = self._context.supervision.keep("identity-lease", self._run)

    async def stop(self) -> None:
        if self._kept is not None:
            await self._kept.stop()

    async def _run(self) -> None:
        while True:
            try:
                await self._renew()
                await self._collect_when_due()
            except (ApiError, Stale) as error:
                # Not a conflict of writers but a store that takes no writes, such as a full disk.
                level = logging.WARNING if isinstance(error, Stale) else logging.ERROR
                log.log(
                    level, "cannot renew the server's lease %s, will retry: %s", self._name, error
                )
            await rest(_RENEW_SECONDS)

    async def _renew(self) -> None:
        piece = self._lease()
        resource, _, entry = self._maker.find(piece)
        if entry is None:
            await self._maker.make(self._addressed(piece))
        else:
            obj = self._addressed(entry.decode())
            obj["spec"] = {**(obj.get("spec") or {}), **piece["spec"]}
            await self._maker.rewrite(resource, entry, obj)

    async def _collect_when_due(self) -> None:
        """Delete Leases that have expired. Another server may delete or renew one meanwhile."""
        now = self._context.now()
        if now < self._collects_at:
            return
        self._collects_at = now + _COLLECT_EVERY
        resource, _, _ = self._maker.find(self._lease())
        for entry in list(resource.objects.entries.values()):
            if _IDENTITY.items() <= entry.labels.items() and is_expired(entry.decode(), now):
                with suppress(Stale):
                    await self._maker.remove(resource, entry)

    def _addressed(self, lease: Object) -> Object:
        if self._address is None:
            return lease
        metadata = with_renewal(lease, self._address, self._context.now())
        return {**lease, "metadata": metadata}

    def _lease(self) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self._name,
                "namespace": "kube-system",
                "labels": {**_IDENTITY, "kubernetes.io/hostname": self._host},
            },
            "spec": {
                "holderIdentity": self._holder,
                "leaseDurationSeconds": _DURATION_SECONDS,
                "renewTime": micro_time(self._context.now()),
            },
        }
