"""Admission plugin that tells clients when the main cluster's configuration may be out of date.

``views.py`` puts it before the other plugins. While the main cluster cannot be followed, reads go
on, and writes are judged by the namespaces, policies, webhooks and quotas seen last; a policy or
webhook that needs an answer fails by its own failure policy. Each such write gets a warning.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving


class OutdatedHome:
    """Warns in place of deciding."""

    def __init__(self, trouble: Callable[[], str | None]) -> None:
        self._trouble = trouble

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.VALIDATE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        trouble = self._trouble()
        if trouble is not None:
            operation.warn(
                "the main cluster's namespaces, policies, webhooks and quotas may be out of date: "
                f"{trouble}"
            )
