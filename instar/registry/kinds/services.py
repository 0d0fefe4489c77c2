"""Services: ports, and where they are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.api.strings import dns1035_label
from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.schema.objectmeta import NameRule

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing


class ServiceStrategy(BuiltinStrategy):
    name_rule: NameRule = staticmethod(lambda name, prefix: dns1035_label(name.rstrip("-")))

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
