"""Finds the CRDs that the CRD controller must reconcile, from the catalog's data about each.

Used by ``crds.py``, which does the reconciling. A change of one CRD must not read all others: CRDs
that wait for a name are listed per group, only conflicting names are returned, and whether a status
is current is decided without reading schemas.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.crd import Crd, CrdNames
from instar.kube.crds.api_approval import is_protected
from instar.kube.crds.conditions import ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL, approval_status
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.crd_text import without_spec
from instar.server.registry.resources.resource import Resource


class PendingCrds:
    """Tracks which CRDs wait for names and which have an outdated status."""

    def __init__(self, catalog: Catalog, crds: Resource) -> None:
        self._catalog, self._crds = catalog, crds
        self._unnamed: dict[str, set[str]] = {}
        """Group → its CRDs that lack some of the names they request."""

    def look_at_all(self) -> list[str]:
        """Return the names of all CRDs that need reconciling."""
        self._unnamed.clear()
        for name in self._crds.objects.keys:
            self.note(name)
        return [name for name in self._crds.objects.keys if not self.is_at_rest(name)]

    def note(self, name: str) -> None:
        """Update the bookkeeping after the CRD was written or deleted."""
        group = name.partition(".")[2]
        waits = name in self._crds.objects.entries and not _is_named(self._catalog.custom(name))
        if waits:
            self._unnamed.setdefault(group, set()).add(name)
        elif group in self._unnamed:
            self._unnamed[group].discard(name)
            if not self._unnamed[group]:
                del self._unnamed[group]

    def waiting_for_name(self, group: str) -> list[str]:
        """Return the CRDs of the group that wait for a name held by another CRD."""
        return list(self._unnamed.get(group, ()))

    def is_at_rest(self, name: str) -> bool:
        """Return whether the CRD's status is certainly current; False in case of doubt."""
        entry, resource = self._crds.objects.entries.get(name), self._catalog.custom(name)
        if entry is None or resource is None or not _is_named(resource):
            return False
        crd = resource.crd
        if crd.deleting or not crd.is_true(ESTABLISHED):
            return False
        # Only CRDs made before structural schemas were required can violate their rules; one that
        # did has the condition, which goes when its schemas are mended.
        if crd.preserve_unknown or NON_STRUCTURAL in crd.conditions:
            return False
        if not is_protected(crd.group):
            return True
        around = without_spec(entry)
        if around is None:
            return False
        around["spec"] = {"group": crd.group}
        return approval_status(around, "") is around["status"]

    def rivals(self, name: str, names: CrdNames, revision: int) -> list[Object]:
        """Return the CRDs of the group that hold a name which this CRD requests. An older CRD that
        waits for its names counts as holding them, so that two replicas deciding on two CRDs at the
        same time do not assign one name twice."""
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
                found.append(_names_of(crd, held))
        return found


def _is_named(resource: Resource | None) -> bool:
    return resource is not None and resource.crd.accepted == resource.crd.names


def _all_names(names: CrdNames) -> set[str]:
    return {names.plural, names.singular, names.kind, names.list_kind, *names.short_names} - {""}


def _names_of(crd: Crd, names: CrdNames) -> Object:
    """Return the part of a CRD that the name decision reads."""
    accepted = {
        "plural": names.plural,
        "singular": names.singular,
        "kind": names.kind,
        "listKind": names.list_kind,
        "shortNames": list(names.short_names),
    }
    return {"spec": {"group": crd.group}, "status": {"acceptedNames": accepted}}
