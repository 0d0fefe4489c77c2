"""FlowSchemas and PriorityLevelConfigurations as they are stored, each parsed once per revision.

``lifecycle/composition.py`` makes it for ``configuration.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from instar.kube.flow_control.priority_levels import PriorityLevel, priority_level_of
from instar.kube.flow_control.schemas import FlowSchema, flow_schema_of
from instar.server.registry.admission.config_cache import ConfigCache
from instar.server.registry.stored.backend import Backend

_GROUP = "flowcontrol.apiserver.k8s.io"


class FollowedFlowObjects:
    """The stored objects that configure priority and fairness."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._schemas = ConfigCache(backend, _GROUP, "flowschemas", flow_schema_of)
        self._levels = ConfigCache(
            backend, _GROUP, "prioritylevelconfigurations", priority_level_of
        )

    def schemas(self) -> Sequence[FlowSchema]:
        return self._schemas.current()

    def levels(self) -> Sequence[PriorityLevel]:
        return self._levels.current()

    def on_change(self, listener: Callable[[], None]) -> None:
        for cache in (self._schemas, self._levels):
            cache.objects.listeners.append(lambda _: listener())
        self._backend.cache.on_reset(listener)
