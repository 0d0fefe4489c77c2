"""Strategies of IPAddress and ServiceCIDR; ``admission/plugins/service_addresses.py`` allocates
addresses.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.ranges import (
    address_name,
    ip_address_change_errors,
    ip_address_errors,
    service_cidr_change_errors,
    service_cidr_errors,
)
from instar.kube.schema.metadata.object_meta import NameRule
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class IpAddressStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(address_name)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return ip_address_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return ip_address_change_errors(new, old)


class ServiceCidrStrategy(BuiltinStrategy):
    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return service_cidr_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return service_cidr_change_errors(new, old)
