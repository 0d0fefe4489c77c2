"""The scale subresource over HTTP: a Scale in, a Scale out, the object's replicas in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from instar import errors
from instar.api.crd import Column, ScalePaths
from instar.plain import Object, copy_json
from instar.registry.resources.columns import AGE_DESCRIPTION, TablePrinter, utc_now
from instar.registry.resources.context import Context, WriteOptions
from instar.registry.resources.resource import Target
from instar.registry.resources.strategy import APPLY_PATCH
from instar.registry.stored.entry import Entry
from instar.registry.verbs.apply import apply_scale
from instar.registry.verbs.metadata import check_names
from instar.registry.verbs.patch import read_patch, strict, undecodable
from instar.registry.verbs.read import get
from instar.registry.verbs.scale import (
    API_VERSION,
    KIND,
    has_replicas,
    set_replicas,
    to_scale,
    unset_scale,
)
from instar.registry.verbs.scale_decode import decode_scale
from instar.registry.verbs.write import Proposal, UpdateRules, update
from instar.schema.objectmeta import MetaError
from instar.server.bodies import Malformed, parse, read_applied, read_object
from instar.server.negotiate import JSON, Form, body_media, patch_media, response_form
from instar.server.options import exact_revision, write_options
from instar.server.request import Request
from instar.server.responses import Response, partial, typed_response

_HANDLED = 'Scale in version "v1" cannot be handled as a Scale: '


async def do_scale(
    context: Context, request: Request, target: Target, verb: str, paths: ScalePaths
) -> Response:
    if verb == "get":
        form = response_form(request)
        view = await get(context.backend, target, exact_revision(request))
        return _answer(orjson.loads(view), paths, form)
    if verb == "update":
        return await _update(context, request, target, paths)
    accepted = target.serving.strategy.patch_types
    media = patch_media(request.header(b"content-type"), accepted, builtin=False)
    form = response_form(request)
    if media == APPLY_PATCH:
        return await _apply(context, request, target, paths, form)
    options = write_options(request, "PatchOptions")
    patch = read_patch(request.content(), media, options.field_validation)

    def change(current: Object) -> Object:
        patched = patch.apply(current)
        return _patched(patched, patch.problems, options)

    return await _write(context, target, paths, form, change, options, is_patch=True)


async def _update(
    context: Context, request: Request, target: Target, paths: ScalePaths
) -> Response:
    form = response_form(request)
    options = write_options(request, "UpdateOptions")
    media = body_media(request.header(b"content-type"))
    body = read_object(request.content(), media, KIND)
    _check_type(body.obj)
    try:
        scale, unknown = decode_scale(body.obj)
    except MetaError as error:
        raise errors.BadRequest(f"{_HANDLED}{error}") from error
    problems = [*body.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if problems and options.field_validation == "Strict":
        raise errors.BadRequest(f"{_HANDLED}strict decoding error: {', '.join(problems)}")
    if options.field_validation == "Warn":
        for text in problems:
            request.warn(text)
    check_names(scale, target)
    return await _write(context, target, paths, form, lambda _: scale, options, is_patch=False)


def _patched(patched: Any, problems: list[str], options: WriteOptions) -> Object:
    try:
        scale, unknown = decode_scale(parse(orjson.dumps(patched), JSON).obj)
    except Malformed as error:
        raise undecodable(patched, f"couldn't get version/kind; {error}") from error
    except MetaError as error:
        raise undecodable(patched, str(error)) from error
    listed = [*problems, *(f'unknown field "{path}"' for path in unknown)]
    strict(patched, listed, options.field_validation, options.warn)
    return scale


async def _write(
    context: Context,
    target: Target,
    paths: ScalePaths,
    form: Form,
    change: Callable[[Object], Object],
    options: WriteOptions,
    *,
    is_patch: bool,
) -> Response:
    async def propose(old: Object, entry: Entry) -> Proposal:
        wanted = change(to_scale(old, paths) if has_replicas(old, paths) else unset_scale(old))
        check_names(wanted, target)
        new = copy_json(old)
        set_replicas(new, wanted, paths)
        given = wanted["metadata"]
        new["metadata"]["resourceVersion"] = given.get("resourceVersion") or str(entry.revision)
        if given.get("uid"):
            new["metadata"]["uid"] = given["uid"]
        return Proposal(new)

    rules = UpdateRules("scale", unconditional=True, uid_is_precondition=not is_patch)
    written = await update(context, target, propose, options, rules)
    return _answer(orjson.loads(written.view), paths, form)


async def _apply(
    context: Context, request: Request, target: Target, paths: ScalePaths, form: Form
) -> Response:
    options = write_options(request, "PatchOptions", apply=True)
    config = read_applied(request.content()).obj
    try:
        decode_scale(config)
    except MetaError as error:
        raise errors.BadRequest(f"{_HANDLED}{error}") from error
    written = await apply_scale(context, target, config, paths, options)
    return _answer(orjson.loads(written.view), paths, form)


def _check_type(body: Object) -> None:
    given = body.get("apiVersion") or ""
    if given != API_VERSION:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({API_VERSION})"
        )


def _answer(obj: Object, paths: ScalePaths, form: Form) -> Response:
    scale = to_scale(obj, paths)
    if form.transform == "Table":
        return typed_response(200, _table(scale, form.version), form)
    if form.transform == "PartialObjectMetadata":
        return typed_response(200, partial(scale, form.version), form)
    if form.transform:
        raise errors.Unclassified("content is not a list")
    return typed_response(200, scale, form)


_COLUMNS = (
    Column("Desired", "integer", ".spec.replicas", "", "Number of desired replicas"),
    Column("Available", "integer", ".status.replicas", "", "Number of actual replicas"),
    Column("Age", "date", ".metadata.creationTimestamp", "", AGE_DESCRIPTION),
)


def _table(scale: Object, version: str) -> Object:
    printer = TablePrinter(_COLUMNS)
    shown = {**scale, "spec": {"replicas": 0, **scale["spec"]}}
    row = {"cells": printer.cells(shown, utc_now()), "object": partial(scale, version)}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
        "columnDefinitions": printer.definitions,
        "rows": [row],
    }
