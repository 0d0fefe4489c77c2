"""Strategies of LimitRange and ResourceQuota; admission plugins enforce them.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.limits import limit_range_errors, quota_change_errors, quota_errors
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class LimitRangeStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        for item in obj["spec"].get("limits") or ():
            if item.get("type") != "Container":
                continue
            limit = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
            for name, value in (("default", limit), ("defaultRequest", request)):
                if value:
                    item[name] = value

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return limit_range_errors(obj)


class ResourceQuotaStrategy(BuiltinStrategy):
    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return quota_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return quota_change_errors(new, old)
