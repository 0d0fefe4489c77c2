"""Table printer of built-in kinds: columns from ``facts/``, cells from the family's module.

Made by ``builtin_resources.py`` for each kind and called when a client requests a Table. A kind
without a cell function shows name and creation time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from typing import Any

from instar.base.json_values import Object
from instar.kube.api.jsonpath_steps import Work
from instar.kube.facts.resources import BuiltinColumn, ResourceFacts
from instar.server.registry.resources.columns import AGE_DESCRIPTION, NAME_DESCRIPTION, TablePrinter

Cells = Callable[[Object, datetime], list[Any]]
"""One object → its cells."""

_FAMILIES: Mapping[str, str] = {
    "": "core",
    "admissionregistration.k8s.io": "admission",
    "apiregistration.k8s.io": "cluster",
    "apps": "workloads",
    "autoscaling": "autoscaling",
    "batch": "workloads",
    "certificates.k8s.io": "cluster",
    "coordination.k8s.io": "cluster",
    "discovery.k8s.io": "networking",
    "events.k8s.io": "events",
    "flowcontrol.apiserver.k8s.io": "cluster",
    "networking.k8s.io": "networking",
    "node.k8s.io": "cluster",
    "policy": "autoscaling",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "devices",
    "scheduling.k8s.io": "cluster",
    "storage.k8s.io": "storage",
}
_DESCRIPTIONS = {"Name": NAME_DESCRIPTION, "Age": AGE_DESCRIPTION, "Created At": AGE_DESCRIPTION}


class BuiltinPrinter(TablePrinter):
    def __init__(self, columns: tuple[BuiltinColumn, ...], cells: Cells) -> None:
        self.definitions = [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": _DESCRIPTIONS.get(column.name, f"{column.name} of the object."),
                "priority": column.priority,
            }
            for column in columns
        ]
        self._show = cells

    def cells(self, obj: Object, now: datetime, work: Work | None = None) -> list[Any]:
        return self._show(obj, now)


class PodPrinter(BuiltinPrinter):
    """Adds the completed condition to rows of finished pods, by which kubectl can hide them."""

    def conditions(self, obj: Object) -> list[Object]:
        # Imported here: printers are loaded with the first table.
        from instar.server.registry.kinds.printing.pods import done

        return done(obj)


def printer_for(facts: ResourceFacts) -> TablePrinter:
    """Return the printer of a kind; called for the first table."""
    family = _FAMILIES.get(facts.group)
    known: Mapping[str, Cells] = {}
    if family is not None:
        known = import_module(f"instar.server.registry.kinds.printing.{family}").CELLS
    printer = PodPrinter if (facts.group, facts.plural) == ("", "pods") else BuiltinPrinter
    return printer(facts.columns, known.get(facts.plural, _name_and_birth))


def _name_and_birth(obj: Object, now: datetime) -> list[Any]:
    metadata = obj.get("metadata") or {}
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "<unknown>"]
