"""Discovery documents: ``/api``, ``/apis``, resource lists and aggregated discovery.

Called by ``server/endpoints`` (``server/endpoints/documents.py``, ``server/endpoints/groups.py``),
which caches and serves them, and by ``kube/openapi``. Documents are computed from
``DiscoveryResource`` values; the caller decides which resources exist.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.api.crd import Crd, CrdNames, CrdVersion
from instar.kube.api.names import GroupVersion, GroupVersionKind, by_priority

CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
BUILTIN_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

CUSTOM_GROUP_PRIORITY = 1000
UNLISTED_BUILTIN_PRIORITY = 15000
BUILTIN_GROUP_PRIORITIES = {
    "apiregistration.k8s.io": 20001,  # the first in any case: an APIService has at most 20000
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "resource.k8s.io": 15900,
    "storagemigration.k8s.io": 15800,
}
"""Group priorities. Clients resolve an ambiguous short name in this order, so it follows
kube-apiserver's."""


Rank = tuple[int, str]
Ranked = tuple[Rank, Object]


class DiscoveryResource(NamedTuple):
    """One resource to list in discovery; built-in ones are described as ``Crd`` values too."""

    crd: Crd
    builtin: bool = False
    verbs: tuple[str, ...] | None = None
    """Verbs of a built-in resource that does not support the usual ones."""

    @property
    def names(self) -> CrdNames:
        """Names of the resource: of a custom resource its accepted names, not those of its spec."""
        return self.crd.names if self.builtin else self.crd.accepted

    @property
    def established(self) -> bool:
        return self.builtin or self.crd.is_true("Established")

    @property
    def effective_verbs(self) -> tuple[str, ...]:
        if self.verbs is not None:
            return self.verbs
        if self.builtin:
            return BUILTIN_VERBS
        return TERMINATING_VERBS if self.crd.is_true("Terminating") else CUSTOM_VERBS


def legacy_versions(server_address: str) -> Object:
    """Return the document at ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
        ],
    }


def group_list(resources: Iterable[DiscoveryResource]) -> Object:
    """Return the document at ``/apis``. A CRD's group is listed before the CRD is established."""
    groups = _by_group(resources)
    found = [listed for name in groups if (listed := listed_group(name, groups[name]))]
    found.sort(key=itemgetter(0))
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [body for _, body in found]}


def listed_group(name: str, members: Iterable[DiscoveryResource]) -> Ranked | None:
    """Return one group of the document at ``/apis`` and its sort rank."""
    served = [item for item in members if _is_served(item)]
    if not served or not name:
        return None
    return _group_rank(name, served), _group_body(name, served)


def group(resources: Iterable[DiscoveryResource], name: str) -> Object | None:
    """Return the document at ``/apis/<name>``, or ``None`` if there is no such group."""
    members = [item for item in resources if item.crd.group == name and item.crd.served()]
    if not members or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_body(name, members)}


def resource_list(
    resources: Iterable[DiscoveryResource], group: str, version: str
) -> Object | None:
    """Return the document at ``/apis/<group>/<version>`` (``/api/v1`` for the core group)."""
    entries: list[Object] = []
    found = False
    for resource, served in _resources_serving(resources, group, version):
        found = True
        entries.extend(_entries(resource, served))
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        # The oldest of upstream's documents lacks it.
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": str(GroupVersion(group, version)),
        "resources": entries,
    }


def aggregated_discovery(resources: Iterable[DiscoveryResource], *, legacy: bool) -> Object:
    """Return the ``apidiscovery.k8s.io/v2`` document for ``/api`` (``legacy``) or ``/apis``."""
    groups = _by_group(resources)
    chosen = [name for name in groups if (name == "") is legacy]
    found = [ranked for name in chosen if (ranked := aggregated_group(name, groups[name]))]
    found.sort(key=itemgetter(0))
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [body for _, body in found],
    }


def aggregated_group(name: str, members: Iterable[DiscoveryResource]) -> Ranked | None:
    """Return one group of the aggregated document and its sort rank."""
    served = [item for item in members if item.established and _is_served(item)]
    if not served:
        return None
    return (-_priority(served), name), _aggregated_group(name, served)


def etag(document: bytes) -> str:
    """Return the quoted entity tag of a serialised document."""
    return f'"{hashlib.sha512(document).hexdigest().upper()}"'


def storage_version_hash(group: str, version: str, kind: str) -> str:
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _by_group(resources: Iterable[DiscoveryResource]) -> dict[str, list[DiscoveryResource]]:
    groups: dict[str, list[DiscoveryResource]] = {}
    for resource in resources:
        if _is_served(resource):
            groups.setdefault(resource.crd.group, []).append(resource)
    return groups


def _is_served(resource: DiscoveryResource) -> bool:
    return any(version.served for version in resource.crd.versions)


def _versions(members: Sequence[DiscoveryResource]) -> list[str]:
    return by_priority(
        {version.name for item in members for version in item.crd.versions if version.served}
    )


def _priority(members: Sequence[DiscoveryResource]) -> int:
    return max(
        BUILTIN_GROUP_PRIORITIES.get(item.crd.group, UNLISTED_BUILTIN_PRIORITY)
        if item.builtin
        else CUSTOM_GROUP_PRIORITY
        for item in members
    )


def _group_rank(name: str, members: Sequence[DiscoveryResource]) -> Rank:
    """Return the sort rank; equal priorities are ordered by APIService name, which starts with
    the version."""
    return -_priority(members), min(f"{version}.{name}" for version in _versions(members))


def _group_body(name: str, members: Sequence[DiscoveryResource]) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in _versions(members)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources_serving(
    resources: Iterable[DiscoveryResource], group: str, version: str
) -> Iterator[tuple[DiscoveryResource, CrdVersion]]:
    members = [item for item in resources if item.crd.group == group and item.established]
    for resource in sorted(members, key=lambda item: item.names.plural):
        found = resource.crd.version(version)
        if found is not None and found.served:
            yield resource, found


def _entries(resource: DiscoveryResource, version: CrdVersion) -> Iterator[Object]:
    names, namespaced = resource.names, resource.crd.namespaced
    yield {
        "name": names.plural,
        "singularName": names.singular,
        "namespaced": namespaced,
        "kind": names.kind,
        "verbs": list(resource.effective_verbs),
        **_aliases(names),
        **_hash_field(resource),
    }
    parts = version.subresources()
    own = (resource.crd.group, version.name)
    for name, verbs, kind in sorted(parts, key=itemgetter(0)) if resource.builtin else parts:
        yield {
            "name": f"{names.plural}/{name}",
            "singularName": "",
            "namespaced": namespaced,
            **_elsewhere(kind, own),
            "kind": names.kind if kind is None else kind.kind,
            "verbs": list(verbs),
        }


def _elsewhere(kind: GroupVersionKind | None, own: tuple[str, str]) -> Object:
    """Return group and version of a subresource's kind, if they are not the list's own."""
    if kind is None or (kind.group, kind.version) == own:
        return {}
    return {"group": kind.group, "version": kind.version}


def _aliases(names: CrdNames) -> Object:
    found: Object = {}
    if names.short_names:
        found["shortNames"] = list(names.short_names)
    if names.categories:
        found["categories"] = list(names.categories)
    return found


def _hash_field(resource: DiscoveryResource) -> Object:
    """Return ``storageVersionHash`` for stored resources; a CRD must also serve the version it
    stores."""
    crd = resource.crd
    storage = crd.version(crd.storage_version())
    if resource.builtin and crd.names.plural == _NOT_STORED:
        return {}
    if storage is None or not ({"get", "list"} & set(resource.effective_verbs)):
        return {}
    if not storage.served and not resource.builtin:
        return {}
    group, version = _STORED_AS.get(crd.name, (crd.group, storage.name))
    return {"storageVersionHash": storage_version_hash(group, version, crd.names.kind)}


_STORED_AS = {
    "events.events.k8s.io": ("", "v1"),
    "customresourcedefinitions.apiextensions.k8s.io": ("apiextensions.k8s.io", "v1beta1"),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        "admissionregistration.k8s.io",
        "v1beta1",
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": (
        "admissionregistration.k8s.io",
        "v1beta1",
    ),
}
"""Built-in resources → the group and version that kube-apiserver 1.36 stores, where another."""
_NOT_STORED = "componentstatuses"


def _aggregated_group(name: str, members: Sequence[DiscoveryResource]) -> Object:
    versions = [
        {
            "version": version,
            "resources": [
                _aggregated_resource(item, served)
                for item, served in _resources_serving(members, name, version)
            ],
            "freshness": "Current",
        }
        for version in _versions(members)
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _aggregated_resource(resource: DiscoveryResource, version: CrdVersion) -> Object:
    names = resource.names
    response_kind = {"group": resource.crd.group, "version": version.name, "kind": names.kind}
    parts = version.subresources()
    if resource.builtin:
        # As upstream: a kind of the resource's own group version is named alone.
        response_kind |= {"group": "", "version": ""}
        parts = tuple(sorted(parts, key=lambda part: part.name))
    subresources = [
        {
            "subresource": name,
            "responseKind": response_kind if kind is None else kind._asdict(),
            "verbs": list(verbs),
        }
        for name, verbs, kind in parts
    ]
    return {
        "resource": names.plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if resource.crd.namespaced else "Cluster",
        "singularResource": names.singular,
        "verbs": list(resource.effective_verbs),
        **_aliases(names),
        **({"subresources": subresources} if subresources else {}),
    }
