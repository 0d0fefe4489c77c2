"""Strategy of Pod: defaults, initial status, and allowed changes.

The verbs find it through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.pod_spec import new_pod_errors, status_address_errors
from instar.kube.builtin_rules.pods.update import (
    change_errors,
    ephemeral_errors,
    has_same_containers,
    resize_errors,
    with_ephemeral_containers,
    with_resources,
)
from instar.kube.schema.pipeline import Warn, keep_member
from instar.server.registry.kinds.builtin import BuiltinStrategy, keep_user_metadata
from instar.server.registry.kinds.workloads.podspec_defaults import (
    default_pod_only,
    default_pod_spec,
)
from instar.server.registry.kinds.workloads.qos import qos_class

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing


class PodStrategy(BuiltinStrategy):
    counts_generation = True

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        """Keep an explicit empty ``overhead``: the RuntimeClass plugin checks that it was given."""
        asked = obj.get("spec")
        empty = isinstance(asked, dict) and asked.get("overhead") == {}
        unknown = super().decode(obj, version)
        if empty:
            obj["spec"]["overhead"] = {}
        return unknown

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        default_pod_spec(spec)
        default_pod_only(spec)
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        status = obj.get("status") or {}
        first = status.get("podIP")
        if first and (not status.get("podIPs") or status["podIPs"][0].get("ip") != first):
            status["podIPs"] = [{"ip": first}]

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        spec = obj["spec"]
        if old is not None:
            if spec.get("overhead") == {}:
                del spec["overhead"]
            return
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        """Bind a pod to a node without incrementing the generation."""
        if subresource == "binding":
            return
        if subresource == "ephemeralcontainers":
            new["spec"] = with_ephemeral_containers(old["spec"], new["spec"])
            keep_user_metadata(new, old)
        elif subresource == "resize" and has_same_containers(new["spec"], old["spec"]):
            new["spec"] = with_resources(old["spec"], new["spec"])
            keep_user_metadata(new, old)
        super().prepare_subresource(subresource, new, old, version)

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_status(new, old, version)
        status, former = new.setdefault("status", {}), old.get("status") or {}
        if "qosClass" in former:
            keep_member(status, former, "qosClass")

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return new_pod_errors(obj["spec"])

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        """Validate only the change: a stored pod may predate a rule."""
        wrong_type = version.pipeline.type_errors(new)
        if wrong_type:
            return wrong_type
        found = self.metadata_update_errors(new, old, version, subresource)
        spec, former = new["spec"], old["spec"]
        if subresource == "status":
            return found + status_address_errors(new.get("status") or {})
        if subresource == "ephemeralcontainers":
            return found + ephemeral_errors(spec, former)
        if subresource == "resize":
            return found + resize_errors(new, old, qos_class(spec))
        if subresource == "binding":
            return found
        return found + change_errors(spec, former)

    def grace_period(self, stored: Object, wanted: int | None) -> int | None:
        """Return the grace period; a pod without a node needs none."""
        spec = stored["spec"]
        ended = (stored.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not spec.get("nodeName") or ended:
            return 0
        period = spec.get("terminationGracePeriodSeconds", 0) if wanted is None else wanted
        return 1 if period < 0 else int(period)
