"""HTTP routes of one version of a resource: path, verb, request and response models.

Called by ``documents.py``; ``v2.py`` and ``v3.py`` write each route in their format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.kube.api.crd import CrdSubresource, CrdVersion
from instar.kube.api.discovery import DiscoveryResource
from instar.kube.api.patch_types import OF_BUILTIN, OF_CUSTOM
from instar.kube.openapi.naming import (
    META_PREFIX,
    group_version_path,
    model_name,
    operation_infix,
    tag,
)

_PATCH = f"{META_PREFIX}Patch"
_STATUS = f"{META_PREFIX}Status"
DELETE_OPTIONS = f"{META_PREFIX}DeleteOptions"

_CUSTOM_PATCHES = tuple(map(str, OF_CUSTOM))
_BUILTIN_PATCHES = tuple(map(str, OF_BUILTIN))
_PLAIN = ("application/json", "application/yaml")
_OPTIONS = "Options"
"""Suffix of kinds that only describe a connection, which then streams no objects."""


class Route(NamedTuple):
    """One operation of an OpenAPI document: path, method, and what it takes and returns."""

    path: str
    method: str
    action: str
    operation_id: str
    description: str
    body: str
    """Model of the request body, or empty."""
    response: str
    """Model of the response; empty for plain text."""
    statuses: tuple[tuple[str, str], ...]
    consumes: tuple[str, ...]
    tag: str
    gvk: dict[str, str]

    @property
    def produces(self) -> tuple[str, ...]:
        return _PLAIN if self.response else ("*/*",)


class _VerbRow(NamedTuple):
    """One verb: HTTP method, action, permission, operation id and description, and its
    responses."""

    method: str
    action: str
    permission: str
    id_verb: str
    phrase: str
    statuses: tuple[tuple[str, str], ...] = (("200", "OK"),)


_CREATED, _ACCEPTED = ("201", "Created"), ("202", "Accepted")
_OK = ("200", "OK")
_LIST = _VerbRow("get", "list", "list", "list", "list objects of kind {kind}")
_CREATE = _VerbRow(
    "post", "post", "create", "create", "create one {kind}", (_OK, _CREATED, _ACCEPTED)
)
_COLLECTION = (
    _LIST,
    _CREATE,
    _VerbRow(
        "delete", "deletecollection", "deletecollection", "delete", "delete a collection of {kind}"
    ),
)
_ITEM = (
    _VerbRow("get", "get", "get", "read", "read {what}"),
    _VerbRow("put", "put", "update", "replace", "replace {what}", (_OK, _CREATED)),
    _VerbRow("delete", "delete", "delete", "delete", "delete {what}", (_OK, _ACCEPTED)),
    _VerbRow("patch", "patch", "patch", "patch", "change parts of {what}", (_OK, _CREATED)),
)


def routes(resource: DiscoveryResource, version: CrdVersion) -> Iterator[Route]:
    """Yield the routes. Custom resources list all verbs, whatever state their CRD is in;
    built-ins their own."""
    crd = resource.crd
    root = f"/{group_version_path(crd.group, version.name)}"
    plural, kind = crd.names.plural, crd.names.kind
    allowed = set(resource.effective_verbs) if resource.builtin else None
    build = _Builder(resource, version.name)
    scope = ""
    if crd.namespaced:
        if allowed is None or "list" in allowed:
            yield build.route(f"{root}/{plural}", _LIST, f"{kind}ForAllNamespaces")
        root, scope = f"{root}/namespaces/{{namespace}}", "Namespaced"
    for step in _COLLECTION:
        if allowed is None or step.permission in allowed:
            prefix = "Collection" if step.action == "deletecollection" else ""
            yield build.route(f"{root}/{plural}", step, f"{prefix}{scope}{kind}")
    item = f"{root}/{plural}/{{name}}"
    for step in _ITEM:
        if allowed is None or step.permission in allowed:
            yield build.route(item, step, f"{scope}{kind}")
    for subresource in version.subresources():
        yield from _subresource_routes(build, item, f"{scope}{kind}", subresource)


def _subresource_routes(
    build: _Builder, item: str, ending: str, subresource: CrdSubresource
) -> Iterator[Route]:
    path, ending = f"{item}/{subresource.name}", ending + subresource.name.capitalize()
    if subresource.kind is None or not subresource.kind.kind.endswith(_OPTIONS):
        for step in (_CREATE, *_ITEM):
            if step.permission in subresource.verbs:
                yield build.route(path, step, ending, subresource)
        return
    for step in (_CREATE, *_ITEM):
        if step.permission in subresource.verbs:
            yield build.connection(path, step, ending, subresource)
            if subresource.name == "proxy":
                further = f"{path}/{{path}}"
                yield build.connection(further, step, f"{ending}WithPath", subresource)


class _Builder:
    """Builds the routes of one resource version."""

    def __init__(self, resource: DiscoveryResource, version: str) -> None:
        names = resource.crd.names
        group, self._kind = resource.crd.group, names.kind
        builtin = self._builtin = resource.builtin
        self._infix, self._tag = operation_infix(group, version), tag(group, version)
        self._gvk = {"group": group, "kind": names.kind, "version": version}
        self._patches = _BUILTIN_PATCHES if builtin else _CUSTOM_PATCHES
        self._model = model_name(group, version, names.kind, builtin=builtin)
        self._list_model = model_name(group, version, names.list_kind, builtin=builtin)

    def route(
        self, path: str, step: _VerbRow, ending: str, subresource: CrdSubresource | None = None
    ) -> Route:
        model, what, gvk = self._model, f"one {self._kind}", self._gvk
        if subresource is not None:
            what = f"{subresource.name} of {what}"
            if subresource.kind is not None:
                model = model_name(*subresource.kind, builtin=True)
                gvk = subresource.kind._asdict() if self._builtin else gvk
        answers = {"list": self._list_model, "delete": _STATUS, "deletecollection": _STATUS}
        bodies = {"post": model, "put": model, "patch": _PATCH, "delete": DELETE_OPTIONS}
        statuses = step.statuses
        if step.action == "patch" and not self._builtin:
            statuses = (_OK,)
        return Route(
            path=path,
            method=step.method,
            action=step.action,
            operation_id=f"{step.id_verb}{self._infix}{ending}",
            description=step.phrase.format(kind=self._kind, what=what),
            body=bodies.get(step.action, ""),
            response=answers.get(step.action, model),
            statuses=statuses,
            consumes=self._patches if step.action == "patch" else _PLAIN,
            tag=self._tag,
            gvk=gvk,
        )

    def connection(
        self, path: str, step: _VerbRow, ending: str, subresource: CrdSubresource
    ) -> Route:
        """Return the route of a connection (exec, proxy …), which is the same for every method."""
        plain = self.route(path, step, ending, subresource)
        return plain._replace(
            action="connect",
            operation_id=f"connect{self._infix}{step.method.capitalize()}{ending}",
            description=f"connect to the {subresource.name} of one {self._kind}",
            body="",
            response="",
            statuses=(_OK,),
            consumes=("*/*",),
        )
