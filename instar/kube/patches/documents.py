"""Parser of patch request bodies into applicable ``Patch`` values, with upstream's error messages.

Called by ``server/registry/verbs/patch.py`` and ``server/rest``. The algorithms are in
``json_patch.py`` and ``strategic_patch.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import orjson

from instar.base.errors import BadRequest, Invalid, RequestTooLarge
from instar.base.field_errors import go_plain
from instar.base.json_values import Object, copy_json
from instar.kube.api.encoding.go_json_errors import go_type, syntax_error
from instar.kube.api.encoding.json_text import (
    TooDeep,
    decode,
    duplicate_keys,
    encode,
    encode_sorted,
)
from instar.kube.api.encoding.strict_error_order import as_json_is_read
from instar.kube.api.patch_types import PatchType
from instar.kube.facts.messages import META, message_of
from instar.kube.facts.types import Schema, schema_of
from instar.kube.patches.go_field_order import in_go_order
from instar.kube.patches.json_patch import MAX_OPERATIONS, PatchFailed, json_patch, merge_patch
from instar.kube.patches.strategic_patch import strategic_merge

_TEXTS = {"op", "path", "from"}
_OPERATION_FIELDS = {*_TEXTS, "value"}


class Patch(NamedTuple):
    """A parsed patch that can be applied to objects."""

    apply: Callable[[Object], Any]
    """Returns the patched document; the argument is not changed."""
    problems: list[str]
    """Messages for repeated or unknown fields of the patch itself."""
    quote: Callable[[Any, Object], str] = lambda patched, old: encode_sorted(patched).decode()
    """Returns what an error message quotes of the patched document, given the old object."""
    grafts: bool = False
    """Whether the result shares unchanged parts with the old object and is no deeper than
    either."""
    from_values: bool = False
    """Whether upstream decodes the result from values here, and not from text."""


def read_patch(body: bytes, kind: PatchType, validation: str) -> Patch:
    """Parse a patch. Raises ``BadRequest``. ``validation`` decides which parser's message a bad
    patch gets."""
    document = _parse(body, kind, validation)
    if kind is PatchType.JSON:
        operations = _operations(document, validation)
        problems = _operation_problems(body, operations)
        quote = partial(_quoted_document, _changed_members(operations))
        return Patch(lambda obj: _apply_json(obj, operations), problems, quote)
    if not isinstance(document, dict):
        return Patch(lambda obj: document, [])
    duplicates = [f'duplicate field "{path}"' for path in duplicate_keys(body, document)]
    if kind is PatchType.STRATEGIC:
        return Patch(
            lambda obj: strategic_merge(obj, document, _type_of(obj)),
            duplicates,
            lambda patched, old: go_plain(document),
            from_values=True,
        )
    quote = partial(_quoted_document, frozenset(document))
    return Patch(lambda obj: merge_patch(obj, document), duplicates, quote, grafts=True)


def _changed_members(operations: list[Object]) -> frozenset[str]:
    """Return the top-level members that some operation changes."""
    paths = (str(operation.get("path", "")) for operation in operations)
    return frozenset(path.split("/")[1] for path in paths if path.startswith("/"))


def _quoted_document(touched: frozenset[str], patched: Any, old: Object) -> str:
    """Return the document as upstream's error quotes it: members that the patch changed are sorted,
    others are in Go's field order."""
    message = message_of(old.get("apiVersion", ""), old.get("kind", ""))
    if message is None or not isinstance(patched, dict):
        return encode_sorted(patched).decode()
    ordered = in_go_order(patched, message)
    shown = {
        name: orjson.Fragment(
            encode_sorted(patched[name]) if name in touched else encode(ordered[name])
        )
        for name in sorted(patched)
    }
    return orjson.dumps(shown).decode()


def _type_of(obj: Object) -> Schema:
    """Return the schema of the object's kind; an unknown kind is open except for the common
    fields."""
    found = schema_of(obj.get("apiVersion", ""), obj.get("kind", ""))
    if found is not None:
        return found
    metadata = schema_of(META, "ObjectMeta")
    conditions = {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "type"}
    return {
        "properties": {"metadata": metadata, "status": {"properties": {"conditions": conditions}}}
    }


def _parse(body: bytes, kind: PatchType, validation: str) -> Any:
    wanted = "[]handlers.jsonPatchOp" if kind is PatchType.JSON else "map[string]interface {}"
    prefix = "" if kind is PatchType.STRATEGIC else "error decoding patch: "
    try:
        document = decode(body)
    except TooDeep as error:
        raise BadRequest(f"{prefix}{error}") from error
    except orjson.JSONDecodeError as error:
        if validation == "Ignore" and kind is PatchType.MERGE:
            raise BadRequest("Invalid JSON Patch") from error
        raise BadRequest(f"{prefix}{syntax_error(body, error.pos)}") from error
    if document is None and kind is PatchType.JSON:
        return []
    if document is None and kind is PatchType.MERGE:
        raise BadRequest("Invalid JSON Patch")
    fits = isinstance(document, list if kind is PatchType.JSON else dict)
    if not fits and (validation != "Ignore" or kind is PatchType.STRATEGIC):
        found = go_type(document)
        raise BadRequest(f"{prefix}json: cannot unmarshal {found} into Go value of type {wanted}")
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
    operations = [{} if operation is None else operation for operation in document]
    for operation in operations:
        _check_types(operation, validation)
    return operations


def _check_types(operation: Any, validation: str) -> None:
    """Refuse what Go cannot read as an operation. Without field validation only the map is read
    here, and its members while the patch is applied."""
    prefix, of = "error decoding patch: ", "handlers.jsonPatchOp"
    if validation == "Ignore":
        prefix, of = "", "jsonpatch.Operation"
    if not isinstance(operation, dict):
        found = go_type(operation)
        raise BadRequest(f"{prefix}json: cannot unmarshal {found} into Go value of type {of}")
    if validation == "Ignore":
        return
    for name, value in operation.items():
        if name in _TEXTS and value is not None and not isinstance(value, str):
            raise BadRequest(
                f"{prefix}json: cannot unmarshal {go_type(value)} into Go struct field "
                f"jsonPatchOp.{name} of type string"
            )


def _operation_problems(body: bytes, operations: list[Object]) -> list[str]:
    unknown = [
        f"[{position}].{name}"
        for position, operation in enumerate(operations)
        for name in operation
        if name not in _OPERATION_FIELDS
    ]
    if not unknown and not duplicate_keys(body, operations):
        return []
    return [f"json patch {text}" for text in as_json_is_read(body, unknown)]


def _apply_json(obj: Object, operations: list[Object]) -> Any:
    try:
        return json_patch(copy_json(obj), operations)
    except (PatchFailed, TypeError) as error:
        raise Invalid(
            "the server rejected our request due to an error in our request", details={}
        ) from error
