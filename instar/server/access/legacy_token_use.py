"""Notes on a Secret the day on which its ServiceAccount token was last used.

``identity/legacy_tokens.py`` calls it for each use of such a token; a Secret that has the date
already is not written. kube-controller-manager's cleaner of legacy tokens reads the label.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from instar.base import errors
from instar.base.json_values import Object
from instar.server.identity.legacy_tokens import LAST_USED
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules

log = logging.getLogger(__name__)
_OPTIONS = WriteOptions(manager="kube-apiserver", field_validation="Ignore")
_RULES = UpdateRules(unconditional=True, uid_is_precondition=False)


class LegacyTokenUse:
    """Writes the label of the last use."""

    def __init__(self, context: Context, secrets: Resource, *, read_only: bool) -> None:
        self._context, self._secrets, self._read_only = context, secrets, read_only

    async def note(self, namespace: str, name: str) -> None:
        """Label the Secret with today's date, unless it has it. A failed write is logged."""
        entry = self._secrets.objects.entries.get(f"{namespace}/{name}")
        if entry is None or self._read_only:
            return
        now = self._context.now()
        today, tomorrow = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
        try:
            labels = entry.decode()["metadata"].get("labels") or {}
            if labels.get(LAST_USED) not in (today, tomorrow):
                await self._write(namespace, name, today)
        except (errors.ApiError, UnreadableEntry) as error:
            log.error("cannot label secret %s/%s with its last use: %s", namespace, name, error)

    async def _write(self, namespace: str, name: str, today: str) -> None:
        async def propose(old: Object, entry: CacheEntry) -> Proposal:
            metadata = dict(old["metadata"])
            metadata["labels"] = {**(metadata.get("labels") or {}), LAST_USED: today}
            return Proposal({**old, "metadata": metadata})

        secrets = self._secrets
        serving = secrets.serving
        target = Target(secrets, serving, secrets.codec, serving.storage, namespace, name)
        await update(self._context, target, propose, _OPTIONS, _RULES)
