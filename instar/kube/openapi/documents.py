"""Parts common to v2 and v3 documents: published versions, their paths and their models.

Called by ``v2.py`` and ``v3.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from instar.base.json_values import Object
from instar.kube.api.crd import CrdVersion
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.api.names import GroupVersion
from instar.kube.openapi import parameters
from instar.kube.openapi.builtin import BORROWED, builtin_models, is_known
from instar.kube.openapi.models import SCALE, SHARED, list_model
from instar.kube.openapi.naming import model_name
from instar.kube.openapi.option_kinds import option_kinds
from instar.kube.openapi.parameters import Parameter
from instar.kube.openapi.published import published_schema, selectable_fields
from instar.kube.openapi.reference_style import Dialect
from instar.kube.openapi.routes import DELETE_OPTIONS, Route, routes

Entry = tuple[DiscoveryResource, CrdVersion]


def served(resources: Iterable[DiscoveryResource]) -> Iterator[Entry]:
    """Yield every published version, resource by resource."""
    for resource in resources:
        if resource.established:
            for version in resource.crd.versions:
                if version.served:
                    yield resource, version


def paths(
    entries: Iterable[Entry],
    operation: Callable[[Route], Object],
    parameter: Callable[[Parameter], Object],
) -> Object:
    """Return every path with its methods, each written by the document's own ``operation``."""
    found: Object = {}
    for resource, version in entries:
        for route in routes(resource, version):
            shared = parameters.of_path(route.path, route.gvk["kind"])
            path = found.setdefault(route.path, {"parameters": [parameter(p) for p in shared]})
            path[route.method] = operation(route)
    return found


def models(
    entries: Iterable[Entry],
    dialect: Dialect,
    option_homes: Iterable[GroupVersion],
    *,
    scaled: bool = False,
) -> Object:
    """Return all models of a document by name, sorted as upstream's encoder does.

    ``option_homes`` are the group versions under which the document lists request options.
    ``scaled``: include the models of Scale even if no entry needs them.
    """
    found: Object = {}
    roots: list[tuple[str, str]] = []
    for resource, version in entries:
        scaled = scaled or version.scale is not None
        known = _roots(resource, version) if resource.builtin else []
        roots += known
        if not known:
            found |= own_models(resource, version, dialect)
            roots += BORROWED.get((resource.crd.names.kind, version.name), ())
    if roots:
        found = {**builtin_models(roots, dialect), **found}
    shared = {**SHARED, **SCALE} if scaled else SHARED
    found |= {name: dialect.render(model) for name, model in shared.items()}
    homes = {"x-kubernetes-group-version-kind": option_kinds(option_homes)}
    found[DELETE_OPTIONS] = {**found[DELETE_OPTIONS], **homes}
    return dict(sorted(found.items()))


def own_models(resource: DiscoveryResource, version: CrdVersion, dialect: Dialect) -> Object:
    """Return the model of a resource that has its own schema, and of its list."""
    crd, builtin = resource.crd, resource.builtin
    names = crd.names
    item = model_name(crd.group, version.name, names.kind, builtin=builtin)
    listed = model_name(crd.group, version.name, names.list_kind, builtin=builtin)
    selectable = selectable_fields(version)
    list_form = list_model(item, crd.group, version.name, names.list_kind, names.kind, selectable)
    return {
        item: published_schema(resource, version, dialect),
        listed: dialect.render(list_form),
    }


def _roots(resource: DiscoveryResource, version: CrdVersion) -> list[tuple[str, str]]:
    """Return the types of a built-in kind; empty if ``kube/facts`` does not have it."""
    home = str(GroupVersion(resource.crd.group, version.name))
    kind = resource.crd.names.kind
    if not is_known(home, kind):
        return []
    parts = [part.kind for part in version.subresources() if part.kind is not None]
    others = [(str(GroupVersion(part.group, part.version)), part.kind) for part in parts]
    return [(home, kind), (home, resource.crd.names.list_kind), *others]
