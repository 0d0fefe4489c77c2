"""Verbs over HTTP: one short function per verb, from request to registry call to response.

``server/app.py`` calls them. The rules of a verb are in ``registry/verbs``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from instar.base import errors, offload
from instar.base.json_values import Object
from instar.kube.api.encoding.object_text import Repeated
from instar.kube.patches.documents import read_patch
from instar.server.http.messages import JSON_TYPE, Header, Request, Response
from instar.server.http.websocket import is_websocket
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.verbs.apply import apply_configuration
from instar.server.registry.verbs.delete import delete
from instar.server.registry.verbs.delete_many import delete_collection
from instar.server.registry.verbs.delete_options import DeleteOptions
from instar.server.registry.verbs.growing_step import run_growing_step
from instar.server.registry.verbs.metadata import check_namespace
from instar.server.registry.verbs.ownership import Ownership
from instar.server.registry.verbs.patch import patch
from instar.server.registry.verbs.read import get, list_objects
from instar.server.registry.verbs.subresources.admission import admit_posted_object
from instar.server.registry.verbs.watch import WatchOptions, open_watch
from instar.server.registry.verbs.write import create, replace
from instar.server.registry.verbs.write_request import WriteResult
from instar.server.rest.bodies import Body, read_applied, read_object, repeated_in_go_order
from instar.server.rest.list_stream import streamed_list
from instar.server.rest.negotiate import (
    CBOR,
    CBOR_SEQUENCE,
    PLAIN,
    PROTOBUF,
    Offer,
    ResponseFormat,
    body_media,
    patch_type,
    response_form,
    watch_form,
)
from instar.server.rest.options import delete_options, exact_revision, list_options, write_options
from instar.server.rest.responses import (
    check_include,
    is_plain,
    list_response,
    object_response,
    plain_response,
)
from instar.server.rest.watch_stream import WatchFeed, watch_renderer
from instar.server.rest.websocket_watch import websocket_watch

if TYPE_CHECKING:
    from instar.server.audit.request_record import RequestRecord


async def do_get(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request, _offer(target))
    if request.query:
        if request.flag("export"):
            raise errors.BadRequest(
                "the export parameter, deprecated since v1.14, is no longer supported"
            )
        revision = exact_revision(request)
    else:
        revision = None
    view = await get(context.backend, target, revision)
    if form is PLAIN:
        return plain_response(200, view)
    return await object_response(200, view, form, target.version, _include(request, form))


async def do_list(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request, _offer(target))
    include = _include(request, form)
    options = list_options(request, target.serving, target.version)
    streams = is_plain(form) and not target.version.builtin
    listing = await list_objects(context.backend, target, options, streams=streams)
    if listing.more is not None:
        return streamed_list(listing, listing.more, target.version)
    return await list_response(listing, form, target.version, include)


async def do_watch(context: Context, request: Request, target: Target) -> Response:
    form = watch_form(request, _offer(target))
    include = _include(request, form)
    exact_revision(request)
    select = list_options(request, target.serving, target.version)
    timeout = select.timeout_seconds
    if select.fields is not None:
        target = _narrowed_to_name(target, select.fields.exact("metadata.name"))
    options = WatchOptions(
        select,
        bookmarks=bool(request.flag("allowWatchBookmarks")),
        watch_list=context.watch_list,
    )
    kind, render = watch_renderer(form, target.version, include)
    stream = await open_watch(context.backend, target, options, kind, render)
    feed = WatchFeed(context.backend, stream, bookmarks=options.bookmarks, timeout_seconds=timeout)
    if is_websocket(request):
        return websocket_watch(request, feed, form.media)
    return Response(200, (), [_stream_type(form)], stream=feed)


def _stream_type(form: ResponseFormat) -> Header:
    if form.media == PROTOBUF:
        return (b"content-type", f"{PROTOBUF};stream=watch".encode())
    return (b"content-type", CBOR_SEQUENCE.encode()) if form.media == CBOR else JSON_TYPE


def _narrowed_to_name(target: Target, name: str | None) -> Target:
    if target.name and name is not None and name != target.name:
        raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
    return target


async def do_create(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request, _offer(target))
    media = body_media(request)
    options = write_options(request, "CreateOptions")
    obj = await _body(request, target, media, options)
    check_namespace(obj["metadata"], target)
    written = await create(context, target, obj, options)
    return _plainly(201, written, form) or await _written(201, written, request, form, target)


async def do_update(
    context: Context, request: Request, target: Target, subresource: str = ""
) -> Response:
    _check_named(target)
    form = response_form(request, _offer(target))
    options = write_options(request, "UpdateOptions")
    media = body_media(request)
    obj = await _body(request, target, media, options)
    written = await replace(context, target, obj, options, subresource)
    status = 201 if written.created else 200
    return _plainly(status, written, form) or await _written(status, written, request, form, target)


async def do_patch(
    context: Context, request: Request, target: Target, subresource: str = ""
) -> Response:
    accepted, builtin = target.serving.strategy.patch_types, target.serving.builtin
    kind = patch_type(request, accepted, builtin=builtin)
    _check_named(target)
    form = response_form(request, _offer(target))
    options = write_options(request, "PatchOptions", apply=kind.applies)
    if kind.applies:
        body = await offload.run(options.size, read_applied, request.content(), kind)
        written = await apply_configuration(
            context, target, body.obj, body.duplicates, options, subresource
        )
    else:
        content, validation = request.content(), options.field_validation
        change = await offload.run(options.size, read_patch, content, kind, validation)
        written = await patch(context, target, change, options, subresource)
    status = 201 if written.created else 200
    return _plainly(status, written, form) or await _written(status, written, request, form, target)


async def do_delete(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request, _offer(target))
    options = await _delete_options(request, target)
    deleted = await delete(context, target, options)
    status = 202 if deleted.accepted and deleted.lingers else 200
    if not deleted.is_object:
        form = ResponseFormat(form.media, pretty=form.pretty)
    include = _include(request, form)
    return await object_response(status, deleted.body, form, target.version, include)


async def do_delete_collection(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request, _offer(target))
    select = list_options(request, target.serving, target.version)
    options = await _delete_options(request, target)
    listing = await delete_collection(context, target, select, options)
    return await list_response(listing, form, target.version, _include(request, form))


async def read_review(
    context: Context, request: Request, target: Target
) -> tuple[Object, ResponseFormat]:
    """Decode a review, which is answered and not stored; field ownership is kept as usual."""
    form = response_form(request, _offer(target))
    options = write_options(request, "CreateOptions")
    media = body_media(request)
    obj = await _body(request, target, media, options)
    await Ownership(context, target, options).on_create(obj)
    await admit_posted_object(context, target, obj, options)
    return obj, form


async def _delete_options(request: Request, target: Target) -> DeleteOptions:
    return await offload.run(len(request.body), delete_options, request, target.serving)


async def _body(request: Request, target: Target, media: str, options: WriteOptions) -> Object:
    if not target.serving.strategy.keeps_nulls:
        options.given = lambda: _read(request, target, media).obj
    obj = await run_growing_step(
        target, options, options.size, _decoded, request, target, media, options
    )
    trail: RequestRecord | None = request.trail
    if trail is not None:
        await offload.run(options.size, trail.record_body, obj)
    return obj


def _read(request: Request, target: Target, media: str) -> Body:
    typed_as = target.version.api_version if target.serving.builtin else ""
    return read_object(request.content(), media, target.serving.kind, typed_as)


def _offer(target: Target) -> Offer:
    return Offer.BUILTIN if target.serving.builtin else Offer.CUSTOM


def _include(request: Request, form: ResponseFormat) -> str:
    if form.transform != "Table":
        return ""
    include = request.one("includeObject")
    check_include(include)
    return include


def _check_named(target: Target) -> None:
    if not target.name:
        raise errors.BadRequest("name must be provided")


def _decoded(request: Request, target: Target, media: str, options: WriteOptions) -> Object:
    """Decode an object of the target's version; report unknown fields by ``fieldValidation``."""
    version, body = target.version, _read(request, target, media)
    unknown = target.serving.strategy.decode(body.obj, version)
    if unknown or body.duplicates:
        _report(request, target, media, options, body, unknown)
    _check_api_version(target, body.obj)
    return body.obj


def _report(
    request: Request,
    target: Target,
    media: str,
    options: WriteOptions,
    body: Body,
    unknown: list[str],
) -> None:
    problems = [*body.duplicates, *(Repeated(f'unknown field "{path}"') for path in unknown)]
    if target.serving.builtin:
        problems = repeated_in_go_order(request.content(), media, body.duplicates, unknown)
    if problems and options.field_validation == "Strict":
        version = target.version
        raise errors.BadRequest(
            f'{body.obj.get("kind")} in version "{version.name}" cannot be handled as a '
            f"{version.kind}: strict decoding error: {_listed(problems)}"
        )
    if options.field_validation == "Warn":
        for problem in problems:
            options.warn(problem.text)


def _listed(problems: list[Repeated]) -> str:
    """Errors of the YAML reader, which name lines, come first in their own sentence."""
    lines = [f"  {problem.text}" for problem in problems if problem.by_line]
    told = [problem.text for problem in problems if not problem.by_line]
    if lines:
        told.insert(0, "yaml: unmarshal errors:\n" + "\n".join(lines))
    return ", ".join(told)


def _check_api_version(target: Target, obj: Object) -> None:
    given = obj.get("apiVersion") or ""
    if given != target.version.api_version:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({target.version.api_version})"
        )


def _plainly(status: int, written: WriteResult, form: ResponseFormat) -> Response | None:
    """A response to most writes, without a coroutine; None for other forms."""
    return plain_response(status, written.view) if form is PLAIN else None


async def _written(
    status: int, written: WriteResult, request: Request, form: ResponseFormat, target: Target
) -> Response:
    include = _include(request, form)
    return await object_response(status, written.view, form, target.version, include)


Verb = Callable[[Context, Request, Target], Awaitable[Response]]
VERBS: dict[str, Verb] = {
    "get": do_get,
    "list": do_list,
    "watch": do_watch,
    "create": do_create,
    "update": do_update,
    "patch": do_patch,
    "delete": do_delete,
    "deletecollection": do_delete_collection,
}
