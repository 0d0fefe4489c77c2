"""Responses with objects: an object or a list as JSON, YAML, protobuf, a Table or partial metadata.

The verbs (``verbs.py``) and the endpoints call it with bytes the registry returned. HTTP responses
themselves are in ``http/messages.py``; which form a client wants is in ``negotiate.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import orjson

from instar.base import offload
from instar.base.errors import ApiError, BadRequest, Internal, NotAcceptable, Unclassified
from instar.kube.api.encoding.json_text import encode, encode_pretty, encode_sorted
from instar.kube.api.jsonpath_steps import Work
from instar.kube.protobuf.envelope import encode_list, encode_message, encode_object
from instar.kube.protobuf.errors import MessageError
from instar.server.http.messages import JSON_TYPE, Header, Response
from instar.server.registry.resources.columns import TablePrinter, utc_now
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.verbs.read import Listing
from instar.server.rest.cbor_documents import cbor_list, to_cbor
from instar.server.rest.negotiate import CBOR, PROTOBUF, YAML, ResponseFormat

PROTOBUF_TYPE: Header = (b"content-type", PROTOBUF.encode())
YAML_TYPE: Header = (b"content-type", b"application/yaml")
CBOR_TYPE: Header = (b"content-type", CBOR.encode())
log = logging.getLogger(__name__)
_CHUNK = 96 << 10


def json_response(status: int, value: Any) -> Response:
    return Response(status, (encode(value) + b"\n",), [JSON_TYPE])


def plain_response(status: int, view: bytes) -> Response:
    """One object as compact JSON, which most clients accept."""
    return Response(status, (view, b"\n"), [JSON_TYPE], None, len(view) + 1)


async def object_response(
    status: int, view: bytes, form: ResponseFormat, version: VersionServing, include: str = ""
) -> Response:
    """One object, as itself, as a Table or as partial metadata."""
    if is_plain(form):
        return _written(status, (view,), form)
    printer = await version.printer.detach()
    return await offload.run(
        len(view), lambda: _formed_object(status, view, form, version, printer, include)
    )


def _formed_object(
    status: int,
    view: bytes,
    form: ResponseFormat,
    version: VersionServing,
    printer: TablePrinter,
    include: str,
) -> Response:
    if not form.transform:
        return _written(status, (view,), form)
    obj = orjson.loads(view)
    if form.transform == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        rows = [table_row(obj, printer, include, form.version)]
        return typed_response(status, table(version, rows, meta, form.version), form)
    if form.transform == "PartialObjectMetadataList":
        raise Unclassified("content is not a list")
    return typed_response(status, partial(obj, form.version), form)


async def list_response(
    listing: Listing, form: ResponseFormat, version: VersionServing, include: str = ""
) -> Response:
    """A list in the requested form. Raises ``NotAcceptable``."""
    if is_plain(form):
        if not version.builtin:
            return _written_list(listing, version)
        return await offload.run(listing.views.size, lambda: _bare_list(listing, version))
    if form.transform == "PartialObjectMetadata":
        raise NotAcceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            "(*unstructured.UnstructuredList)"
        )
    printer = await version.printer.detach()
    return await offload.run(
        listing.views.size, lambda: _formed_list(listing, form, version, printer, include)
    )


def _formed_list(
    listing: Listing,
    form: ResponseFormat,
    version: VersionServing,
    printer: TablePrinter,
    include: str,
) -> Response:
    """A list in another form, object by object: decoded at once it takes ten times its text."""
    meta = _list_meta(listing)
    objects: Iterator[dict[str, Any]] = map(orjson.loads, listing.views)
    if version.builtin and not form.transform:
        objects = map(_untyped, objects)
    if not form.transform and form.media == PROTOBUF:
        return Response(200, (_protobuf_list(version, meta, objects),), [PROTOBUF_TYPE])
    if not form.transform and form.media == YAML:
        return Response(200, (_yaml_list(version, listing, objects),), [YAML_TYPE])
    if not form.transform and form.media == CBOR:
        return Response(200, (_cbor_list(version, listing, objects),), [CBOR_TYPE])
    if not form.transform:
        return Response(200, (_pretty_list(version, listing, objects),), [JSON_TYPE])
    if form.transform == "Table":
        work = Work()
        rows = [table_row(obj, printer, include, form.version, work) for obj in objects]
        return typed_response(200, table(version, rows, meta, form.version), form)
    document = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": meta,
        "items": [partial(obj, form.version) for obj in objects] or None,
    }
    return typed_response(200, document, form)


def is_plain(form: ResponseFormat) -> bool:
    """Whether a response consists of stored bytes alone."""
    return not (form.transform or form.pretty or form.media in (YAML, PROTOBUF, CBOR))


def _yaml_list(
    version: VersionServing, listing: Listing, objects: Iterator[dict[str, Any]]
) -> bytes:
    # Imported here and in ``to_yaml``: most servers never write YAML.
    from instar.kube.api.encoding.yaml_text import write_yaml

    return write_yaml({**_without_items(version, listing), "items": objects})


def _cbor_list(
    version: VersionServing, listing: Listing, objects: Iterator[dict[str, Any]]
) -> bytes:
    return cbor_list(_without_items(version, listing), version.api_version, version.kind, objects)


def _protobuf_list(
    version: VersionServing, meta: dict[str, Any], objects: Iterator[dict[str, Any]]
) -> bytes:
    api_version, kind = version.api_version, version.kind
    items = (_protobuf_item(api_version, kind, obj) for obj in objects)
    return encode_list(api_version, version.list_kind, meta, items)


def _protobuf_item(api_version: str, kind: str, obj: dict[str, Any]) -> bytes:
    try:
        return encode_message(api_version, kind, obj)
    except MessageError as error:
        raise _unshowable(obj, error) from error


def to_protobuf(document: bytes) -> bytes:
    obj = orjson.loads(document)
    try:
        return encode_object(obj)
    except MessageError as error:
        raise _unshowable(obj, error) from error


def _unshowable(obj: dict[str, Any], error: MessageError) -> Internal:
    """Return the error that names the object: leaving it out would look like a deletion."""
    metadata = obj.get("metadata") or {}
    place = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
    text = f"{error.kind} {place} cannot be shown as protobuf, ask for JSON: {error}"
    return Internal(text)


def _pretty_list(
    version: VersionServing, listing: Listing, objects: Iterator[dict[str, Any]]
) -> bytes:
    shell = encode_pretty(_without_items(version, listing))
    if not len(listing.views):
        return shell
    before, _, after = shell.partition(b'"items": []')
    items = (b"    " + encode_pretty(obj).replace(b"\n", b"\n    ") for obj in objects)
    return b"".join((before, b'"items": [\n', b",\n".join(items), b"\n  ]", after))


def _without_items(version: VersionServing, listing: Listing) -> dict[str, Any]:
    ends = version.list_opening + version.list_closing + _closing(listing)
    document: dict[str, Any] = orjson.loads(ends)
    if version.builtin:
        document["metadata"] = _list_meta(listing)
    return document


def _written_list(listing: Listing, version: VersionServing) -> Response:
    """A list joined from stored bytes while it is sent, without a second copy in memory."""
    closing = list_closing(listing, version)
    pieces = listing.views.pieces(_CHUNK)
    first = next(pieces, b"")  # an error of the first piece still becomes an error response
    chunks = chain((version.list_opening, first), _unbroken(pieces), (closing,))
    between = max(0, len(listing.views) - 1)
    length = len(version.list_opening) + listing.views.size + between + len(closing)
    held = listing.views.held
    return Response(200, chunks, [JSON_TYPE], length=length, held=held)


def list_closing(listing: Listing, version: VersionServing) -> bytes:
    """The end of a list, after its last object."""
    return version.list_closing + _closing(listing) + b"\n"


def _unbroken(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Abort the connection on a failure, so that the client sees that the list is incomplete."""
    try:
        yield from pieces
    except ApiError as error:
        log.warning("a list response was aborted half-way: %s", error)
        raise ConnectionAbortedError from error


def _bare_list(listing: Listing, version: VersionServing) -> Response:
    """A list of a built-in kind: its items have no apiVersion and kind."""
    document = {
        "kind": version.list_kind,
        "apiVersion": version.api_version,
        "metadata": _list_meta(listing),
        "items": [orjson.Fragment(_bare(view)) for view in listing.views],
    }
    return Response(200, (orjson.dumps(document), b"\n"), [JSON_TYPE])


def _bare(view: bytes) -> bytes:
    return encode_sorted(_untyped(orjson.loads(view)))


def _untyped(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _closing(listing: Listing) -> bytes:
    remaining = b""
    if listing.remaining is not None:
        remaining = b'"remainingItemCount":%d,' % listing.remaining
    token = listing.token.encode()
    return b'"continue":"%b",%b"resourceVersion":"%d"}}' % (token, remaining, listing.revision)


def _list_meta(listing: Listing) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.token:
        meta["continue"] = listing.token
    if listing.remaining is not None:
        meta["remainingItemCount"] = listing.remaining
    return meta


def table(
    version: VersionServing, rows: list[Any], meta: dict[str, Any], meta_version: str
) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": meta,
        "columnDefinitions": version.printer.definitions,
        "rows": rows,
    }


def table_row(
    obj: dict[str, Any],
    printer: TablePrinter,
    include: str,
    meta_version: str,
    work: Work | None = None,
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": printer.cells(obj, utc_now(), work)}
    told = printer.conditions(obj)
    if told:
        row["conditions"] = told
    if include == "None":
        return {**row, "object": None}
    return {**row, "object": obj if include == "Object" else partial(obj, meta_version)}


def check_include(include: str) -> None:
    if include not in ("", "Metadata", "Object", "None"):
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )


def partial(obj: dict[str, Any], meta_version: str) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": obj.get("metadata", {}),
    }


def _written(status: int, chunks: Sequence[bytes], form: ResponseFormat) -> Response:
    if form.media == PROTOBUF:
        return Response(status, (to_protobuf(b"".join(chunks)),), [PROTOBUF_TYPE])
    if form.media == YAML:
        return Response(status, (to_yaml(b"".join(chunks)),), [YAML_TYPE])
    if form.media == CBOR:
        return Response(status, (to_cbor(b"".join(chunks)),), [CBOR_TYPE])
    if form.pretty:
        return Response(status, (encode_pretty(orjson.loads(b"".join(chunks))),), [JSON_TYPE])
    return Response(status, (*chunks, b"\n"), [JSON_TYPE])


def to_yaml(document: bytes) -> bytes:
    # Imported here: most servers never write YAML.
    from instar.kube.api.encoding.yaml_text import write_yaml

    return write_yaml(orjson.loads(document))


def typed_response(status: int, document: dict[str, Any], form: ResponseFormat) -> Response:
    """A response with a document that is not stored: Status, Scale, a review."""
    return encoded_response(status, encode(document), form)


def encoded_response(status: int, document: bytes, form: ResponseFormat) -> Response:
    """The same for one that is JSON already."""
    return _written(status, (document,), form)
