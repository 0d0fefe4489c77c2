"""One short function per verb: HTTP in, registry call, HTTP out. No rule lives here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from instar import errors
from instar.plain import Object, copy_json
from instar.registry.resources.context import Context, WriteOptions
from instar.registry.resources.resource import Target
from instar.registry.resources.strategy import APPLY_PATCH
from instar.registry.stored.entry import Entry
from instar.registry.verbs.delete import delete, delete_collection
from instar.registry.verbs.metadata import check_names, check_namespace
from instar.registry.verbs.patch import read_patch, strict, undecodable
from instar.registry.verbs.read import get, list_objects
from instar.registry.verbs.watch import WatchOptions, open_watch
from instar.registry.verbs.write import Proposal, UpdateRules, Written, create, update
from instar.server.apply import apply_patch
from instar.server.bodies import Body, Malformed, parse, read_object
from instar.server.negotiate import JSON, Form, body_media, patch_media, response_form, watch_form
from instar.server.options import (
    delete_options,
    exact_revision,
    list_options,
    write_options,
)
from instar.server.request import Request
from instar.server.responses import (
    JSON_TYPE,
    Response,
    check_include,
    list_response,
    object_response,
)
from instar.server.stream import WatchFeed, watch_renderer


async def do_get(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    if request.query:
        if request.flag("export"):
            raise errors.BadRequest(
                "the export parameter, deprecated since v1.14, is no longer supported"
            )
        revision = exact_revision(request)
    else:
        revision = None
    view = await get(context.backend, target, revision)
    return object_response(200, view, form, target.version, _include(request, form))


async def do_list(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    include = _include(request, form)
    options = list_options(request, target.serving, target.version)
    listing = await list_objects(context.backend, target, options)
    return list_response(listing, form, target.version, include)


async def do_watch(context: Context, request: Request, target: Target) -> Response:
    form = watch_form(request)
    include = _include(request, form)
    exact_revision(request)
    select = list_options(request, target.serving, target.version)
    timeout = request.integer("timeoutSeconds")
    if select.fields is not None:
        target = _narrowed_to_name(target, select.fields.exact("metadata.name"))
    options = WatchOptions(select, bookmarks=bool(request.flag("allowWatchBookmarks")))
    kind, render = watch_renderer(form, target.version, include)
    stream = await open_watch(context.backend, target, options, kind, render)
    feed = WatchFeed(context.backend, stream, bookmarks=options.bookmarks, timeout_seconds=timeout)
    return Response(200, (), [JSON_TYPE], stream=feed)


def _narrowed_to_name(target: Target, name: str | None) -> Target:
    if target.name and name is not None and name != target.name:
        raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
    return target


async def do_create(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    media = body_media(request.header(b"content-type"))
    options = write_options(request, "CreateOptions")
    body = _read(request, target, media)
    obj = _decoded(request, target, body, options)
    _check_api_version(target, obj)
    check_namespace(obj["metadata"], target)
    written = await create(context, target, obj, options)
    return _written(201, written, request, form, target)


async def do_update(
    context: Context, request: Request, target: Target, subresource: str = ""
) -> Response:
    if not target.name:
        raise errors.BadRequest("name must be provided")
    form = response_form(request)
    options = write_options(request, "UpdateOptions")
    media = body_media(request.header(b"content-type"))
    body = _read(request, target, media)
    wanted = _decoded(request, target, body, options)
    _check_api_version(target, wanted)
    check_names(wanted, target)

    async def propose(old: Object, entry: Entry) -> Proposal:
        return Proposal(copy_json(wanted))

    strategy = target.serving.strategy
    rules = UpdateRules(subresource, unconditional=strategy.unconditional_update)
    written = await update(context, target, propose, options, rules)
    return _written(200, written, request, form, target)


async def do_patch(
    context: Context, request: Request, target: Target, subresource: str = ""
) -> Response:
    strategy = target.serving.strategy
    media = patch_media(
        request.header(b"content-type"), strategy.patch_types, builtin=target.serving.builtin
    )
    if not target.name:
        raise errors.BadRequest("name must be provided")
    form = response_form(request)
    if media == APPLY_PATCH:
        options = write_options(request, "PatchOptions", apply=True)
        written = await apply_patch(context, request, target, options, subresource)
        return _written(201 if written.created else 200, written, request, form, target)
    options = write_options(request, "PatchOptions")
    patch = read_patch(request.content(), media, options.field_validation)

    async def propose(old: Object, entry: Entry) -> Proposal:
        patched = patch.apply(old)
        kept = kept_members(target, entry, old, patched)
        return Proposal(decode_patched(target, patched, kept, patch.problems, options))

    rules = UpdateRules(
        subresource,
        unconditional=strategy.unconditional_update,
        uid_is_precondition=False,
    )
    written = await update(context, target, propose, options, rules)
    return _written(200, written, request, form, target)


class Kept(NamedTuple):
    """What a patch left alone is normal already: it need not be decoded, pruned or judged."""

    members: Object
    managed: Any = None
    """``metadata.managedFields``, often the larger half of an object."""


def kept_members(target: Target, entry: Entry, old: Object, patched: Any) -> Kept:
    """But for an object that lies in another version: reading it gave it no defaults of this."""
    version = target.version
    if not target.serving.strategy.piecewise or not isinstance(patched, dict):
        return Kept({})
    metadata = patched.get("metadata")
    managed = metadata.get("managedFields") if isinstance(metadata, dict) else None
    managed = managed if managed is old["metadata"].get("managedFields") else None
    if version.compiled.has_defaults and entry.api_version != version.api_version:
        return Kept({}, managed)
    members = {
        name: value
        for name, value in patched.items()
        if isinstance(value, dict) and value is old.get(name) and name != "metadata"
    }
    return Kept(members, managed)


def decode_patched(
    target: Target, patched: Any, kept: Kept, problems: list[str], options: WriteOptions
) -> Object:
    """The result of a patch goes through the same door as a body, but for what was ``kept``."""
    changed = patched
    if kept.members:
        changed = {name: value for name, value in patched.items() if name not in kept.members}
    if kept.managed:
        metadata = {n: v for n, v in patched["metadata"].items() if n != "managedFields"}
        changed = {**changed, "metadata": metadata}
    try:
        text = orjson.dumps(changed)
    except TypeError as error:
        raise errors.BadRequest("the patched object exceeded max depth") from error
    try:
        obj = parse(text, JSON).obj
        unknown = target.serving.strategy.decode(obj, target.version)
    except Malformed as error:
        raise undecodable(patched, f"couldn't get version/kind; {error}") from error
    except errors.BadRequest as error:
        why = error.message.partition(f"as a {target.serving.kind}: ")[2] or error.message
        raise undecodable(patched, why) from error
    listed = [*problems, *(f'unknown field "{path}"' for path in unknown)]
    strict(patched, listed, options.field_validation, options.warn)
    if kept.managed:
        obj["metadata"]["managedFields"] = kept.managed
    return {**obj, **kept.members}


async def do_delete(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    options = delete_options(request, target.serving)
    deleted = await delete(context, target, options)
    status = 202 if deleted.accepted and deleted.lingers else 200
    if not deleted.lingers:
        form = Form(form.media, pretty=form.pretty)
    return object_response(status, deleted.body, form, target.version, _include(request, form))


async def do_delete_collection(context: Context, request: Request, target: Target) -> Response:
    form = response_form(request)
    select = list_options(request, target.serving, target.version)
    options = delete_options(request, target.serving)
    listing = await delete_collection(context, target, select, options)
    return list_response(listing, form, target.version, _include(request, form))


def read_body(request: Request, target: Target) -> tuple[Object, Form]:
    """A body that is answered rather than stored."""
    form = response_form(request)
    media = body_media(request.header(b"content-type"))
    return _read(request, target, media).obj, form


def _read(request: Request, target: Target, media: str) -> Body:
    typed_as = target.version.api_version if target.serving.builtin else ""
    return read_object(request.content(), media, target.serving.kind, typed_as)


def _include(request: Request, form: Form) -> str:
    if form.transform != "Table":
        return ""
    include = request.one("includeObject")
    check_include(include)
    return include


def _decoded(request: Request, target: Target, body: Body, options: WriteOptions) -> Object:
    """Prune, default, and report unknown or repeated fields as the client asked."""
    unknown = target.serving.strategy.decode(body.obj, target.version)
    if options.field_validation == "Ignore" or not (unknown or body.duplicates):
        return body.obj
    problems = [*body.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if options.field_validation == "Warn":
        for text in problems:
            request.warn(text)
        return body.obj
    lines = [text for text in body.duplicates if text.startswith("line ")]
    if lines:
        rest = [text for text in problems if text not in lines]
        joined = "yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines)
        problems = [joined, *rest]
    kind = target.version.kind
    raise errors.BadRequest(
        f'{body.obj.get("kind")} in version "{target.version.name}" cannot be handled as a '
        f"{kind}: strict decoding error: {', '.join(problems)}"
    )


def _check_api_version(target: Target, obj: Object) -> None:
    given = obj.get("apiVersion") or ""
    if given != target.version.api_version:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version "
            f"({target.version.api_version})"
        )


def _written(
    status: int, written: Written, request: Request, form: Form, target: Target
) -> Response:
    return object_response(status, written.view, form, target.version, _include(request, form))


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
