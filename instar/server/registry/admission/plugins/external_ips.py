"""DenyServiceExternalIPs: no Service gets new external IPs; those it has may stay.

Off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``) calls it
for creates and updates of Services.
"""

from __future__ import annotations

from instar.base.errors import forbidden
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving


class DenyServiceExternalIPs:
    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        services = (serving.group, serving.plural) == ("", "services")
        concerned = services and verb in (Verb.CREATE, Verb.UPDATE)
        return PluginPhases.VALIDATE if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        if operation.obj is None or operation.subresource:
            return
        if not _addresses(operation.obj) <= _addresses(operation.old or {}):
            text = "Use of external IPs is denied by admission control"
            raise forbidden("", "services", operation.name, text)


def _addresses(service: Object) -> set[str]:
    return set((service.get("spec") or {}).get("externalIPs") or ())
