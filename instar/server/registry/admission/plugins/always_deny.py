"""AlwaysDeny plugin: rejects every write, for tests of clients and to freeze a server.

Off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``) calls it
for each write.
"""

from __future__ import annotations

from instar.base import errors
from instar.kube.access.attributes import OURSELVES
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving


class AlwaysDenyPlugin:
    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.ADMIT

    def admit(self, operation: Operation) -> None:
        if operation.asked is OURSELVES:
            return  # the server's own writes pass, or it could not start
        serving = operation.target.serving
        metadata = (operation.obj or {}).get("metadata") or {}
        name = operation.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        text = "admission control is denying all modifications"
        raise errors.forbidden(serving.group, serving.plural, name, text)

    def validate(self, operation: Operation) -> None:
        return
