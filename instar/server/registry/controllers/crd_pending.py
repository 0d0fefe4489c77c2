"""Which CRDs need a controller's look, told from what the catalog knows of each.

A change of one CRD must not read any other: of those that wait for a name there is a list, of the
names a group uses only those that matter are handed on, and whether one is at rest is told without
reading its schemas. Decides nothing; who is found here is brought to rest by ``crds.py``.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.crd import Crd, CrdNames
from instar.kube.crds.api_approval import is_protected
from instar.kube.crds.conditions import ESTABLISHED, NAMES_ACCEPTED, approval_status
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.crd_text import without_spec
from instar.server.registry.resources.resource import Resource


class Restless:
    def __init__(self, catalog: Catalog, crds: Resource) -> None:
        self._catalog, self._crds = catalog, crds
        self._unnamed: dict[str, set[str]] = {}
        """Group → its CRDs that have not all the names they want."""

    def look_at_all(self) -> list[str]:
        """Those that are not at rest."""
        self._unnamed.clear()
        for name in self._crds.objects.keys:
            self.note(name)
        return [name for name in self._crds.objects.keys if not self.is_at_rest(name)]

    def note(self, name: str) -> None:
        """The CRD was written, or is gone."""
        group = name.partition(".")[2]
        waits = name in self._crds.objects.entries and not _is_named(self._catalog.custom(name))
        if waits:
            self._unnamed.setdefault(group, set()).add(name)
        elif group in self._unnamed:
            self._unnamed[group].discard(name)
            if not self._unnamed[group]:
                del self._unnamed[group]

    def unnamed(self, group: str) -> list[str]:
        """Whoever may get a name when another of the group lets go of it."""
        return list(self._unnamed.get(group, ()))

    def is_at_rest(self, name: str) -> bool:
        """Whether nothing is to be written. False where that is not plain to see."""
        entry, resource = self._crds.objects.entries.get(name), self._catalog.custom(name)
        if entry is None or resource is None or not _is_named(resource):
            return False
        crd = resource.crd
        # What may break the rules of schemas is what was made before there were any.
        if crd.deleting or crd.preserve_unknown or not crd.is_true(ESTABLISHED):
            return False
        if not is_protected(crd.group):
            return True
        around = without_spec(entry)
        if around is None:
            return False
        around["spec"] = {"group": crd.group}
        return approval_status(around, "") is around["status"]

    def rivals(self, name: str, names: CrdNames, revision: int) -> list[Object]:
        """Those of the group that hold one of the names that this CRD wants. One that came before
        and waits for its names will get them, so that two replicas deciding on two CRDs at the
        same time do not give one name twice."""
        entries, wanted = self._crds.objects.entries, _all_names(names)
        found = []
        for resource in self._catalog.customs_of(name.partition(".")[2]):
            crd = resource.crd
            if crd.name == name:
                continue
            entry = entries.get(crd.name)
            first = entry is not None and entry.revision < revision
            held = crd.names if first and NAMES_ACCEPTED not in crd.conditions else crd.accepted
            if not wanted.isdisjoint(_all_names(held)):
                found.append(_holding(crd, held))
        return found


def _is_named(resource: Resource | None) -> bool:
    return resource is not None and resource.crd.accepted == resource.crd.names


def _all_names(names: CrdNames) -> set[str]:
    return {names.plural, names.singular, names.kind, names.list_kind, *names.short_names} - {""}


def _holding(crd: Crd, names: CrdNames) -> Object:
    """As much of a CRD as a decision about names looks at."""
    accepted = {
        "plural": names.plural,
        "singular": names.singular,
        "kind": names.kind,
        "listKind": names.list_kind,
        "shortNames": list(names.short_names),
    }
    return {"spec": {"group": crd.group}, "status": {"acceptedNames": accepted}}
