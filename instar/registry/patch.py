"""JSON patch, merge patch, strategic merge patch: patch document + object → proposed object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from instar.api.gojson import syntax_error
from instar.api.jsontext import decode, duplicate_keys, encode_sorted
from instar.errors import BadRequest, Invalid, RequestTooLarge
from instar.fields import invalid
from instar.registry.jsonpatch import MAX_OPERATIONS, PatchFailed, json_patch, merge_patch
from instar.registry.strategicpatch import strategic_merge
from instar.registry.strategy import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

Object = dict[str, Any]
Patch = Callable[[Object], Any]
_OPERATION_FIELDS = {"op", "path", "from", "value"}


def read_patch(body: bytes, media: str, validation: str, warn: Callable[[str], None]) -> Patch:
    """A function from the current object to the patched document. Raises ``BadRequest``."""
    document = _parse(body, media, validation)
    problems: list[str] = []
    if media == JSON_PATCH:
        operations = _operations(document, validation)
        problems = _operation_problems(body, operations)
        _report(problems, validation, warn)
        return lambda obj: _apply_json(obj, operations)
    if not isinstance(document, dict):
        return lambda obj: document
    duplicates = [f'duplicate field "{path}"' for path in duplicate_keys(body, document)]
    _report(duplicates, validation, warn)
    merge = strategic_merge if media == STRATEGIC_PATCH else merge_patch
    return lambda obj: merge(obj, document)


def undecodable(patched: Any, text: str) -> Invalid:
    """The patched document cannot be an object of this kind."""
    shown = (
        orjson.dumps(patched).decode()
        if not isinstance(patched, dict)
        else (encode_sorted(patched).decode())
    )
    error = invalid("patch", shown, text)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause()]})


def _parse(body: bytes, media: str, validation: str) -> Any:
    wanted = "[]handlers.jsonPatchOp" if media == JSON_PATCH else "map[string]interface {}"
    try:
        document = decode(body)
    except orjson.JSONDecodeError as error:
        if validation == "Ignore" and media == MERGE_PATCH:
            raise BadRequest("Invalid JSON Patch") from error
        raise BadRequest(f"error decoding patch: {syntax_error(body)}") from error
    fits = isinstance(document, list if media == JSON_PATCH else dict)
    if not fits and validation != "Ignore":
        found = _go_kind(document)
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
        )
    return document


def _operations(document: Any, validation: str) -> list[Object]:
    if not isinstance(document, list):
        raise BadRequest(
            f"json: cannot unmarshal {_go_kind(document)} into Go value of type jsonpatch.Patch"
        )
    if len(document) > MAX_OPERATIONS:
        raise RequestTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(document)}"
        )
    for operation in document:
        if not isinstance(operation, dict):
            raise BadRequest(
                f"error decoding patch: json: cannot unmarshal {_go_kind(operation)} into Go value "
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


def _report(problems: list[str], validation: str, warn: Callable[[str], None]) -> None:
    if not problems or validation == "Ignore":
        return
    if validation == "Strict":
        raise BadRequest("strict decoding error: " + ", ".join(problems))
    for text in problems:
        warn(text)


def _apply_json(obj: Object, operations: list[Object]) -> Any:
    try:
        return json_patch(obj, operations)
    except (PatchFailed, TypeError) as error:
        raise Invalid(
            "the server rejected our request due to an error in our request", details={}
        ) from error


def _go_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"
