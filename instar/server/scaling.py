"""The scale subresource over HTTP: a Scale in, a Scale out, the object's replicas in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from instar import errors
from instar.api.crd import ScalePaths
from instar.registry.applying import apply_scale
from instar.registry.columns import TablePrinter
from instar.registry.context import Context
from instar.registry.entry import Entry
from instar.registry.patch import read_patch, undecodable
from instar.registry.read import get
from instar.registry.resource import Target
from instar.registry.scale import (
    API_VERSION,
    KIND,
    empty_scale,
    has_replicas,
    set_replicas,
    to_scale,
)
from instar.registry.strategy import APPLY_PATCH
from instar.registry.write import Proposal, UpdateRules, update
from instar.server.bodies import Malformed, go_type, parse, read_object
from instar.server.negotiate import Form, body_media, patch_media, response_form
from instar.server.options import exact_revision, write_options
from instar.server.request import Request
from instar.server.responses import Response, typed_response

Object = dict[str, Any]
Propose = Callable[[Object, Entry], Object]


async def do_scale(
    context: Context, request: Request, target: Target, verb: str, paths: ScalePaths
) -> Response:
    form = _form(request)
    if verb == "get":
        view = await get(context.backend, target, exact_revision(request))
        return _answer(orjson.loads(view), paths, form)
    if verb == "update":
        body = read_object(request.body, body_media(request.header(b"content-type")), KIND).obj
        _check_type(body)
        return await _write(
            context, request, target, paths, form, lambda old: body, "UpdateOptions"
        )
    media = patch_media(request.header(b"content-type"), target.serving.strategy.patch_types)
    if media == APPLY_PATCH:
        return await _apply(context, request, target, paths, form)
    validation = request.one("fieldValidation") or "Warn"
    patch = read_patch(request.body, media, validation, request.warn)
    return await _write(context, request, target, paths, form, patch, "PatchOptions")


async def _write(
    context: Context,
    request: Request,
    target: Target,
    paths: ScalePaths,
    form: Form,
    change: Callable[[Object], Any],
    options_kind: str,
) -> Response:
    options = write_options(request, options_kind)

    async def propose(old: Object, entry: Entry) -> Proposal:
        existed = has_replicas(old, paths)
        current = to_scale(old, paths) if existed else empty_scale(old)
        wanted = change(current)
        _check_scale(wanted)
        new = orjson.loads(orjson.dumps(old))
        set_replicas(new, wanted, paths, existed=existed)
        revision = (wanted.get("metadata") or {}).get("resourceVersion")
        new["metadata"]["resourceVersion"] = revision or str(entry.revision)
        return Proposal(new)

    rules = UpdateRules("scale", unconditional=True, uid_is_precondition=False)
    written = await update(context, target, propose, options, rules)
    return _answer(orjson.loads(written.view), paths, form)


async def _apply(
    context: Context, request: Request, target: Target, paths: ScalePaths, form: Form
) -> Response:
    options = write_options(request, "PatchOptions", apply=True)
    try:
        media = "application/json" if request.body.lstrip()[:1] == b"{" else "application/yaml"
        config = parse(request.body, media).obj
    except Malformed as error:
        raise errors.BadRequest(f"error decoding YAML: {error}") from error
    _check_scale(config)
    written = await apply_scale(context, target, config, paths, options)
    return _answer(orjson.loads(written.view), paths, form)


def _check_type(body: Object) -> None:
    given = body.get("apiVersion") or ""
    if given != API_VERSION:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({API_VERSION})"
        )


def _check_scale(scale: Any) -> None:
    spec = scale.get("spec") if isinstance(scale, dict) else None
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if replicas is not None and (isinstance(replicas, bool) or not isinstance(replicas, int)):
        raise undecodable(
            scale,
            f"json: cannot unmarshal {go_type(replicas)} into Go struct field "
            "ScaleSpec.spec.replicas of type int32",
        )


def _form(request: Request) -> Form:
    return response_form(
        request.header(b"accept"),
        pretty=request.flag("pretty"),
        user_agent=request.header(b"user-agent"),
    )


def _answer(obj: Object, paths: ScalePaths, form: Form) -> Response:
    scale = to_scale(obj, paths)
    if form.transform == "Table":
        return typed_response(200, _table(scale, form.version), form)
    return typed_response(200, scale, form)


def _table(scale: Object, version: str) -> Object:
    from instar.api.crd import Column
    from instar.registry.columns import utc_now
    from instar.server.responses import partial

    printer = TablePrinter(
        (
            Column("Desired", "integer", ".spec.replicas", "", "Number of desired replicas"),
            Column("Available", "integer", ".status.replicas", "", "Number of actual replicas"),
            Column("Age", "date", ".metadata.creationTimestamp"),
        )
    )
    row = {"cells": printer.cells(scale, utc_now()), "object": partial(scale, version)}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
        "columnDefinitions": printer.definitions,
        "rows": [row],
    }
