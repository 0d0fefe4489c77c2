"""FlowSchema controller: writes the condition ``Dangling``, which says whether a schema's priority
level exists.

Created by ``server/lifecycle/controller_setup.py``; only the leader acts. Which requests a schema
matches is decided in ``server/flow_control``.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.server.registry.controllers.leadership import Leadership
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.2, 30.0)
_GROUP = "flowcontrol.apiserver.k8s.io"
_DANGLING = "Dangling"


class FlowSchemaController:
    """Keeps one condition of each FlowSchema."""

    def __init__(self, context: Context, catalog: Catalog, leadership: Leadership) -> None:
        self._context, self._leadership = context, leadership
        self._schemas = catalog.builtin(_GROUP, "flowschemas")
        self._levels = catalog.builtin(_GROUP, "prioritylevelconfigurations")
        self._changed: Queue[str] = Queue(
            "flow-schema", self._update, _BACKOFF, max_concurrent=1, supervision=context.supervision
        )

    def start(self) -> None:
        self._schemas.objects.observers.append(self._schema_changed)
        self._levels.objects.observers.append(self._level_changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._leadership.on_elected(self._elected)
        self._look_at_all()

    async def stop(self) -> None:
        await self._changed.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _look_at_all(self) -> None:
        for name in self._schemas.objects.entries:
            self._changed.add(name)

    def _schema_changed(self, change: Change[CacheEntry]) -> None:
        if change.new is not None:
            self._changed.add(change.suffix)

    def _level_changed(self, change: Change[CacheEntry]) -> None:
        if change.new is None or change.old is None:
            self._look_at_all()

    async def _update(self, name: str) -> None:
        entry = self._schemas.objects.entries.get(name)
        if entry is None or not self._leadership.leads:
            return
        try:
            schema = entry.decode()
        except UnreadableEntry:
            return
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        wanted = dangling_condition(level, exists=level in self._levels.objects.entries)
        status = schema.get("status") or {}
        others = [each for each in status.get("conditions") or () if each["type"] != _DANGLING]
        if len(others) < len(status.get("conditions") or ()):
            [present] = [each for each in status["conditions"] if each["type"] == _DANGLING]
            if all(present.get(key) == value for key, value in wanted.items()):
                return
        wanted["lastTransitionTime"] = self._context.timestamp()
        schema["status"] = {**status, "conditions": [*others, wanted]}
        backend = self._context.backend
        await put_server_object(backend, self._schemas, name, schema, entry.revision)


def dangling_condition(level: str, *, exists: bool) -> Object:
    """The condition of a schema that names this priority level, without its time."""
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    return {
        "type": _DANGLING,
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"{text} and it exists" if exists else f"{text} but there is no such object",
    }
