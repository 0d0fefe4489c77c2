"""Strategies of RBAC roles and bindings; ``kube/access/rbac`` evaluates them.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.access.rbac.policy import GROUP
from instar.kube.builtin_rules.rbac import binding_errors, reference_change_errors, role_errors
from instar.kube.schema.metadata.object_meta import NameRule, name_is_path_segment
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class RoleStrategy(BuiltinStrategy):
    scheme = "pkg/api/legacyscheme/scheme.go:30"
    name_rule: NameRule = staticmethod(name_is_path_segment)

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["rules"] = obj.get("rules") or None

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return role_errors(obj, namespaced=version.kind == "Role")


class BindingStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(name_is_path_segment)

    def default(self, obj: Object, version: VersionServing) -> None:
        reference = obj.setdefault("roleRef", {})
        reference["apiGroup"] = reference.get("apiGroup") or GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = subject.get("apiGroup") or GROUP

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return binding_errors(obj, namespaced=version.kind == "RoleBinding")

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return reference_change_errors(new, old)
