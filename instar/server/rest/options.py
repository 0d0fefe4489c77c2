"""Options of requests: query parameters and option bodies, parsed and checked.

``verbs.py`` calls it before the registry. Error messages are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from instar.base.errors import BadRequest, Unclassified, invalid_options
from instar.base.field_errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from instar.kube.access.attributes import Attributes
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.api.selectors import parse_field_selector, parse_label_selector
from instar.kube.apply.managed_fields import manager_from_user_agent
from instar.kube.facts.messages import META
from instar.server.http.messages import Request
from instar.server.registry.resources.context import WriteOptions
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.verbs.delete_options import UNREADABLE, DeleteOptions
from instar.server.registry.verbs.metadata import parse_revision
from instar.server.registry.verbs.read import ListOptions
from instar.server.rest.bodies import NO_KIND, MalformedObject, NotCbor, parse
from instar.server.rest.negotiate import body_media

_MAX_MANAGER = 128
_LONGEST_KEPT = 256
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """``kind`` is the options object in error messages: CreateOptions and so on."""
    manager = request.one("fieldManager")
    if not request.query and not apply:
        manager = _default_manager(request)
        return WriteOptions(
            manager=manager,
            asked=request.asked,
            size=len(request.body),
            warn=request.warn,
            annotate=request.annotate,
            seconds_left=request.seconds_left,
        )
    found = _manager_errors(manager)
    if kind == "PatchOptions":
        if apply and not manager:
            found.append(required("fieldManager", "is required for apply patch"))
        if not apply and "force" in request.query:
            found.insert(0, forbidden("force", "may not be specified for non-apply patch"))
    dry_run = _dry_run(request.query.get("dryRun"), found)
    validation = request.one("fieldValidation")
    if validation not in _VALIDATIONS:
        found.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    if found:
        raise invalid_options(kind, found)
    return WriteOptions(
        manager=manager or _default_manager(request),
        dry_run=dry_run,
        field_validation=validation or "Warn",
        force=bool(request.flag("force")),
        asked=request.asked,
        size=len(request.body),
        warn=request.warn,
        annotate=request.annotate,
        seconds_left=request.seconds_left,
        named_manager=manager,
        named_validation=validation,
    )


def list_options(request: Request, serving: Serving, version: VersionServing) -> ListOptions:
    """Options of list, watch and deletecollection."""
    query = request.query
    if not query:
        return ListOptions()
    labels = parse_label_selector(request.one("labelSelector"))
    fields = parse_field_selector(request.one("fieldSelector"))
    if fields is not None:
        for term in fields.terms:
            check_field_label(term.field, serving, version)
    return ListOptions(
        labels=labels,
        fields=fields,
        revision=list_revision(request),
        match=request.one("resourceVersionMatch"),
        limit=request.integer("limit"),
        timeout_seconds=request.integer("timeoutSeconds"),
        token=request.one("continue"),
        send_initial_events=request.flag("sendInitialEvents"),
    )


def check_field_label(label: str, serving: Serving, version: VersionServing) -> None:
    known = label == "metadata.name" or label in version.selectable
    anywhere = serving.namespaced or serving.builtin
    if known or (label == "metadata.namespace" and anywhere):
        return
    if serving.builtin and not version.selectable:
        raise BadRequest(
            f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    raise BadRequest(f"field label not supported: {label}")


def list_revision(request: Request) -> int | None:
    """Return the ``resourceVersion`` of a list request; None if it has none."""
    return _revision(request, lambda text: BadRequest(f"invalid resource version: {text}"))


def exact_revision(request: Request) -> int | None:
    """For get and watch, where kube-apiserver answers a bad number with a plain 500."""
    return _revision(request, Unclassified)


def _revision(request: Request, refuse: Callable[[str], Exception]) -> int | None:
    text = request.one("resourceVersion")
    if not text:
        return None
    try:
        return parse_revision(text)
    except ValueError as error:
        raise refuse(str(invalid("resourceVersion", text, str(error)))) from error


def delete_options(request: Request, serving: Serving) -> DeleteOptions:
    """Options from the body if there is one, else from the query."""
    if request.content():
        options = delete_options_of(_delete_body(request), request.asked)
        return replace(
            options, warn=request.warn, annotate=request.annotate, seconds_left=request.seconds_left
        )
    query = request.query
    if not query:
        return DeleteOptions(
            asked=request.asked,
            warn=request.warn,
            annotate=request.annotate,
            seconds_left=request.seconds_left,
        )
    grace = request.integer("gracePeriodSeconds") if request.one("gracePeriodSeconds") else None
    found: list[FieldError] = []
    dry_run = _dry_run(query.get("dryRun"), found)
    if found:
        raise invalid_options("DeleteOptions", found)
    return DeleteOptions(
        dry_run=dry_run,
        policy=request.one("propagationPolicy") or None,
        orphan_dependents=request.flag("orphanDependents"),
        unreadable=bool(request.flag(UNREADABLE)),
        grace=grace,
        asked=request.asked,
        **_hooks(request),
    )


def _hooks(request: Request) -> dict[str, Any]:
    """Functions of the request that a deletion calls."""
    return {
        "warn": request.warn,
        "annotate": request.annotate,
        "seconds_left": request.seconds_left,
    }


def _delete_body(request: Request) -> dict[str, Any]:
    media = body_media(request)
    try:
        body = parse(request.content(), media).obj
    except NotCbor as error:
        raise BadRequest(f"{NO_KIND}{error}") from error
    except MalformedObject as error:
        raise BadRequest(f"couldn't get version/kind; {error}") from error
    kind, version = body.get("kind") or "", body.get("apiVersion") or ""
    if kind not in ("", "DeleteOptions"):
        raise BadRequest(
            f'no kind "{kind}" is registered for version "{version or META}" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
        )
    return body


_DELETE_TYPES: dict[str, tuple[type, str]] = {
    "gracePeriodSeconds": (int, "int64"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "orphanDependents": (bool, "bool"),
    "dryRun": (list, "[]string"),
    "preconditions": (dict, "v1.Preconditions"),
    UNREADABLE: (bool, "bool"),
}


def delete_options_of(body: dict[str, Any], asked: Attributes) -> DeleteOptions:
    """Options of a DeleteOptions object, also one inside an Eviction."""
    for name, (wanted, go_name) in _DELETE_TYPES.items():
        value = body.get(name)
        if value is not None and type(value) is not wanted:
            raise BadRequest(
                f"json: cannot unmarshal {go_type(value)} into Go struct field "
                f"DeleteOptions.{name} of type {go_name}"
            )
    found: list[FieldError] = []
    dry_run = _dry_run(body.get("dryRun"), found)
    if found:
        raise invalid_options("DeleteOptions", found)
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        dry_run=dry_run,
        policy=body.get("propagationPolicy"),
        orphan_dependents=body.get("orphanDependents"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        unreadable=bool(body.get(UNREADABLE)),
        grace=body.get("gracePeriodSeconds"),
        asked=asked,
    )


def _dry_run(values: list[str] | None, found: list[FieldError]) -> bool:
    if not values:
        return False
    if any(value != "All" for value in values):
        found.append(not_supported("dryRun", values, ("All",)))
    return True


def _manager_errors(manager: str) -> list[FieldError]:
    if not manager:
        return []
    if len(manager.encode()) > _MAX_MANAGER:
        return [too_long("fieldManager", _MAX_MANAGER)]
    position = next((at for at, char in enumerate(manager) if not char.isprintable()), None)
    if position is None:
        return []
    text = f"invalid character U+{ord(manager[position]):04X} (at position {position})"
    return [invalid("fieldManager", manager, text)]


def _default_manager(request: Request) -> str:
    agent = request.header(b"user-agent")
    return _known_manager(agent) if len(agent) <= _LONGEST_KEPT else manager_from_user_agent(agent)


_known_manager = lru_cache(maxsize=256)(manager_from_user_agent)
"""Cached, as clients send the same header with each request."""
