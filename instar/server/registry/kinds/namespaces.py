"""Strategy of Namespace; ``server/registry/controllers/namespaces.py`` empties terminating ones.

The verbs find it through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.cluster import (
    namespace_errors,
    namespace_status_errors,
    pod_security_errors,
)
from instar.kube.schema.metadata.object_meta import NameRule
from instar.kube.schema.pipeline import keep_member
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class NamespaceStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(lambda name, prefix: dns1123_label(name.rstrip("-")))

    def default(self, obj: Object, version: VersionServing) -> None:
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"
        if obj["metadata"].get("name"):
            _label(obj["metadata"])

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        _label(obj["metadata"])
        if old is not None:
            keep_member(obj, old, "spec")
            return
        finalizers = obj["spec"].get("finalizers") or []
        if "kubernetes" not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, "kubernetes"]
        obj["status"] = {"phase": "Active"}

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return [*namespace_errors(obj), *pod_security_errors(obj)]

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return namespace_status_errors(new)

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        """Allow ``finalize`` to change only ``spec.finalizers``."""
        if subresource == "finalize":
            new["status"] = old.get("status", {})
            _label(new["metadata"])
        else:
            super().prepare_subresource(subresource, new, old, version)

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Mark as terminating; the namespace controller empties it and removes the finalizer."""
        metadata = stored["metadata"]
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = now
            stored["status"] = {**stored.get("status", {}), "phase": "Terminating"}
        return True

    def gone_when_released(self, obj: Object) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")


def _label(metadata: Object) -> None:
    """Set the label by which selectors find a namespace by its name."""
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata.get("name", "")
