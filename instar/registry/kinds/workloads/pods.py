"""Pods as objects: defaults and the status they begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.registry.kinds.workloads.podspec_defaults import default_pod_only, default_pod_spec
from instar.registry.kinds.workloads.qos import qos_class

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class PodStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        default_pod_spec(spec)
        default_pod_only(spec)

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        if old is None:
            obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}

    def grace_period(self, stored: Object, wanted: int | None) -> int | None:
        """Only what runs somewhere needs time to stop."""
        spec = stored["spec"]
        ended = (stored.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not spec.get("nodeName") or ended:
            return 0
        period = spec.get("terminationGracePeriodSeconds", 0) if wanted is None else wanted
        return 1 if period < 0 else int(period)

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        """A binding is no change of the spec as its owner means it: the generation stays."""
        if subresource != "binding":
            super().prepare_subresource(subresource, new, old, version)
