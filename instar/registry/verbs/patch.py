"""JSON patch, merge patch, strategic merge patch: patch document + object → proposed object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from instar.api.gojson import go_type, syntax_error
from instar.api.jsontext import TooDeep, decode, duplicate_keys, encode_sorted
from instar.errors import BadRequest, Invalid, RequestTooLarge
from instar.fields import invalid
from instar.patches.jsonpatch import MAX_OPERATIONS, PatchFailed, json_patch, merge_patch
from instar.patches.strategicpatch import strategic_merge
from instar.plain import Object, copy_json
from instar.registry.resources.strategy import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

_OPERATION_FIELDS = {"op", "path", "from", "value"}


class Patch(NamedTuple):
    apply: Callable[[Object], Any]
    """The current object → the patched document; the argument stays as it is."""
    problems: list[str]
    """Repeated or unknown fields of the patch itself, as texts for ``strict``."""


def read_patch(body: bytes, media: str, validation: str) -> Patch:
    """Raises ``BadRequest``. ``validation`` decides which parser's sentence a bad patch gets."""
    document = _parse(body, media, validation)
    if media == JSON_PATCH:
        operations = _operations(document, validation)
        problems = _operation_problems(body, operations)
        return Patch(lambda obj: _apply_json(obj, operations), problems)
    if not isinstance(document, dict):
        return Patch(lambda obj: document, [])
    duplicates = [f'duplicate field "{path}"' for path in duplicate_keys(body, document)]
    merge = strategic_merge if media == STRATEGIC_PATCH else merge_patch
    return Patch(lambda obj: merge(obj, document), duplicates)


def strict(patched: Any, problems: list[str], validation: str, warn: Callable[[str], None]) -> None:
    """Report what decoding the patch and its result left out, as the client asked."""
    if not problems or validation == "Ignore":
        return
    if validation == "Strict":
        raise undecodable(patched, "strict decoding error: " + ", ".join(problems))
    for text in problems:
        warn(text)


def undecodable(patched: Any, text: str) -> Invalid:
    """The patched document cannot be an object of this kind."""
    shown = encode_sorted(patched).decode()
    error = invalid("patch", shown, text)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause()]})


def _parse(body: bytes, media: str, validation: str) -> Any:
    wanted = "[]handlers.jsonPatchOp" if media == JSON_PATCH else "map[string]interface {}"
    try:
        document = decode(body)
    except TooDeep as error:
        raise BadRequest(f"error decoding patch: {error}") from error
    except orjson.JSONDecodeError as error:
        if validation == "Ignore" and media == MERGE_PATCH:
            raise BadRequest("Invalid JSON Patch") from error
        raise BadRequest(f"error decoding patch: {syntax_error(body, error.pos)}") from error
    fits = isinstance(document, list if media == JSON_PATCH else dict)
    if not fits and validation != "Ignore":
        found = go_type(document)
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
        )
    return document


def _operations(document: Any, validation: str) -> list[Object]:
    if not isinstance(document, list):
        raise BadRequest(
            f"json: cannot unmarshal {go_type(document)} into Go value of type jsonpatch.Patch"
        )
    if len(document) > MAX_OPERATIONS:
        raise RequestTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(document)}"
        )
    for operation in document:
        if not isinstance(operation, dict):
            raise BadRequest(
                f"error decoding patch: json: cannot unmarshal {go_type(operation)} into Go value "
                "of type handlers.jsonPatchOp"
            )
    return document


def _operation_problems(body: bytes, operations: list[Object]) -> list[str]:
    duplicates = [
        f'json patch duplicate field "{path}"' for path in duplicate_keys(body, operations)
    ]
    unknown = [
        f'json patch unknown field "[{position}].{name}"'
        for position, operation in enumerate(operations)
        for name in operation
        if name not in _OPERATION_FIELDS
    ]
    return duplicates + unknown


def _apply_json(obj: Object, operations: list[Object]) -> Any:
    try:
        return json_patch(copy_json(obj), operations)
    except (PatchFailed, TypeError) as error:
        raise Invalid(
            "the server rejected our request due to an error in our request", details={}
        ) from error
