"""The scale subresource: decodes and encodes Scale objects.

``server/app.py`` calls it; ``registry/verbs/subresources/scaling.py`` reads and changes the object.
"""

from __future__ import annotations

import orjson

from instar.base import errors, offload
from instar.base.json_values import Object
from instar.kube.api.crd import PrinterColumn, ScalePaths
from instar.kube.api.patch_types import PatchType
from instar.kube.patches.documents import read_patch
from instar.kube.schema.metadata.object_meta import MetaError
from instar.server.http.messages import Request, Response
from instar.server.registry.resources.columns import AGE_DESCRIPTION, TablePrinter, utc_now
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.verbs.read import get
from instar.server.registry.verbs.subresources.scale import API_VERSION, KIND, to_scale
from instar.server.registry.verbs.subresources.scale_decode import decode_scale
from instar.server.registry.verbs.subresources.scaling import apply_scale, patch_scale, update_scale
from instar.server.registry.verbs.write_request import WriteResult
from instar.server.rest.bodies import read_applied, read_object
from instar.server.rest.negotiate import (
    Offer,
    ResponseFormat,
    body_media,
    patch_type,
    response_form,
)
from instar.server.rest.options import exact_revision, write_options
from instar.server.rest.responses import partial, typed_response

_HANDLED = 'Scale in version "v1" cannot be handled as a Scale: '


async def do_scale(
    context: Context, request: Request, target: Target, verb: str, paths: ScalePaths
) -> Response:
    """get, update and patch of a Scale."""
    if verb == "get":
        form = response_form(request, Offer.BUILTIN)
        view = await get(context.backend, target, exact_revision(request))
        return _answer(orjson.loads(view), paths, form)
    if verb == "update":
        form = response_form(request, Offer.BUILTIN)
        written = await _update(context, request, target, paths)
    else:
        accepted = target.serving.strategy.patch_types
        builtin = target.serving.builtin
        kind = patch_type(request, accepted, builtin=builtin)
        form = response_form(request, Offer.BUILTIN)
        written = await _patch(context, request, target, paths, kind)
    return _answer(orjson.loads(written.view), paths, form)


async def _update(
    context: Context, request: Request, target: Target, paths: ScalePaths
) -> WriteResult:
    options = write_options(request, "UpdateOptions")
    media, content = body_media(request), request.content()
    scale, problems = await offload.run(options.size, lambda: _read(content, media))
    if problems and options.field_validation == "Strict":
        raise errors.BadRequest(f"{_HANDLED}strict decoding error: {', '.join(problems)}")
    if options.field_validation == "Warn":
        for text in problems:
            request.warn(text)
    return await update_scale(context, target, scale, paths, options)


async def _patch(
    context: Context, request: Request, target: Target, paths: ScalePaths, kind: PatchType
) -> WriteResult:
    if kind.applies:
        options = write_options(request, "PatchOptions", apply=True)
        config = await offload.run(options.size, lambda: _read_applied(request.content(), kind))
        return await apply_scale(context, target, config, paths, options)
    options = write_options(request, "PatchOptions")
    change = await offload.run(
        options.size, lambda: read_patch(request.content(), kind, options.field_validation)
    )
    return await patch_scale(context, target, change, paths, options)


def _read(content: bytes, media: str) -> tuple[Object, list[str]]:
    """The Scale, and its unknown or repeated fields."""
    body = read_object(content, media, KIND)
    _check_type(body.obj)
    scale, unknown = _decoded(body.obj)
    return scale, [*map(str, body.duplicates), *(f'unknown field "{path}"' for path in unknown)]


def _read_applied(content: bytes, kind: PatchType) -> Object:
    config = read_applied(content, kind).obj
    _decoded(config)
    return config


def _decoded(body: Object) -> tuple[Object, list[str]]:
    try:
        return decode_scale(body)
    except MetaError as error:
        raise errors.BadRequest(f"{_HANDLED}{error}") from error


def _check_type(body: Object) -> None:
    given = body.get("apiVersion") or ""
    if given != API_VERSION:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({API_VERSION})"
        )
    kind = body.get("kind") or ""
    if kind != KIND:
        raise errors.BadRequest(f'no kind "{kind}" is registered for version "{API_VERSION}"')


def _answer(obj: Object, paths: ScalePaths, form: ResponseFormat) -> Response:
    scale = to_scale(obj, paths)
    if form.transform == "Table":
        return typed_response(200, _table(scale, form.version), form)
    if form.transform == "PartialObjectMetadata":
        return typed_response(200, partial(scale, form.version), form)
    if form.transform:
        raise errors.Unclassified("content is not a list")
    return typed_response(200, scale, form)


_COLUMNS = (
    PrinterColumn("Desired", "integer", ".spec.replicas", "", "Number of desired replicas"),
    PrinterColumn("Available", "integer", ".status.replicas", "", "Number of actual replicas"),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp", "", AGE_DESCRIPTION),
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
