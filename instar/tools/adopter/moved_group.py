"""The group that is moved: its CRDs with the facts that the steps need. Pure.

``cluster.py`` reads it once for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from instar.base.json_values import Object
from instar.tools.adopter.errors import AdoptError
from instar.wire.client.paths import resource_path


class MovedCrd(NamedTuple):
    """What a move needs to know of one CRD."""

    name: str
    uid: str
    group: str
    plural: str
    kind: str
    namespaced: bool
    served: tuple[str, ...]
    stored: str
    with_status: frozenset[str]
    """Versions that have the subresource status."""
    deleting: bool
    established: bool

    @property
    def read_version(self) -> str:
        """The version at which objects are copied: the stored one, if it is served."""
        return self.stored if self.stored in self.served else self.served[0]

    def path(self, version: str, key: str = "", subresource: str = "") -> str:
        """Return the path of all objects, or of the one with this key (namespace/name)."""
        namespace, _, name = key.rpartition("/")
        return resource_path(
            self.group,
            version,
            self.plural,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )

    def collection_path(self, version: str, key: str) -> str:
        """Return the path to which the object with this key is posted."""
        namespace = key.rpartition("/")[0]
        return resource_path(self.group, version, self.plural, namespace=namespace)


class MovedGroup(NamedTuple):
    """The API group and its CRDs."""

    name: str
    crds: tuple[MovedCrd, ...]

    @property
    def versions(self) -> list[str]:
        """Every served version of any CRD: each is routed by an APIService of its own."""
        return sorted({version for crd in self.crds for version in crd.served})


def read_group(name: str, crds: Iterable[Object]) -> MovedGroup:
    """Raises ``AdoptError`` if the group has no CRD."""
    found = [_read(crd) for crd in crds if crd["spec"]["group"] == name]
    if not found:
        raise AdoptError(f"the cluster has no CRD of the group {name}")
    return MovedGroup(name, tuple(sorted(found, key=lambda crd: crd.name)))


def _read(crd: Object) -> MovedCrd:
    spec, status = crd["spec"], crd.get("status") or {}
    served = tuple(each["name"] for each in spec["versions"] if each.get("served"))
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return MovedCrd(
        crd["metadata"]["name"],
        crd["metadata"]["uid"],
        spec["group"],
        spec["names"]["plural"],
        spec["names"]["kind"],
        spec.get("scope") != "Cluster",
        served,
        next(each["name"] for each in spec["versions"] if each.get("storage")),
        frozenset(
            each["name"]
            for each in spec["versions"]
            if "status" in (each.get("subresources") or {})
        ),
        "deletionTimestamp" in crd["metadata"],
        conditions.get("Established") == "True",
    )


def key_of(obj: Object) -> str:
    """Return namespace/name, or the name of a cluster-scoped object."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def revision_of(obj: Object) -> int:
    """Return the resourceVersion as a number; 0 if the object has none."""
    return int(obj["metadata"].get("resourceVersion") or 0)
