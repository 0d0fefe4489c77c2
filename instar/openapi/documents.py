"""What v2 and v3 documents have in common: which versions appear, their paths and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from instar.api.crd import CrdVersion
from instar.api.discovery import Resource
from instar.openapi import parameters
from instar.openapi.builtin_models import EXTRA_MODELS
from instar.openapi.dialect import Dialect
from instar.openapi.models import SCALE, SHARED, list_model
from instar.openapi.naming import model_name
from instar.openapi.parameters import Parameter
from instar.openapi.published import published_schema, selectable_fields
from instar.openapi.routes import Route, routes
from instar.plain import Object

Entry = tuple[Resource, CrdVersion]


def served(resources: Iterable[Resource]) -> Iterator[Entry]:
    """Every version that is published, resource by resource."""
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
    """Every path with its methods, each written by the document's own ``operation``."""
    found: Object = {}
    for resource, version in entries:
        for route in routes(resource, version):
            shared = parameters.of_path(route.path, route.gvk["kind"])
            path = found.setdefault(route.path, {"parameters": [parameter(p) for p in shared]})
            path[route.method] = operation(route)
    return found


def models(entries: Iterable[Entry], dialect: Dialect) -> Object:
    """All models of a document by name, sorted as upstream's encoder does."""
    found: Object = {name: dialect.render(model) for name, model in SHARED.items()}
    scaled = False
    for resource, version in entries:
        crd, builtin = resource.crd, resource.builtin
        names = crd.names
        item = model_name(crd.group, version.name, names.kind, builtin=builtin)
        found[item] = published_schema(resource, version, dialect)
        if not builtin or "list" in resource.effective_verbs:
            listed = model_name(crd.group, version.name, names.list_kind, builtin=builtin)
            selectable = selectable_fields(version)
            found[listed] = dialect.render(
                list_model(item, crd.group, version.name, names.list_kind, names.kind, selectable)
            )
        scaled = scaled or version.scale is not None
        if builtin:
            extra = EXTRA_MODELS.get(names.kind, {})
            found.update((name, dialect.render(model)) for name, model in extra.items())
    if scaled:
        found.update((name, dialect.render(model)) for name, model in SCALE.items())
    return dict(sorted(found.items()))
