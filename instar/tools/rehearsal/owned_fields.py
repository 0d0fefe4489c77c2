"""Builds the apply configuration of a field manager from an object and its managedFields. Pure.

``client_replay.py`` applies it again after a step.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.base.json_values import Object
from instar.kube.apply.field_set import SELF, BadFieldSet, FieldSet, parse
from instar.kube.schema.json_types import ABSENT


def own_fields(entry: Object, obj: Object) -> Object | None:
    """Return the fields that an entry of managedFields names; None if the entry cannot be read.
    Keys of list items are included, because every apply must name them.
    """
    try:
        fields = parse(entry.get("fieldsV1"))
    except BadFieldSet:
        return None
    found = _part(fields, obj, top=True)
    own: Object = found if isinstance(found, dict) else {}
    metadata = {
        name: value
        for name, value in (own.get("metadata") or {}).items()
        if name in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    metadata["name"] = obj["metadata"]["name"]
    if obj["metadata"].get("namespace"):
        metadata["namespace"] = obj["metadata"]["namespace"]
    return {
        **own,
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
    }


def _part(fields: FieldSet, value: Any, *, top: bool = False) -> Any:
    children = {name: node for name, node in fields.items() if name != SELF}
    if not children:
        return {} if top else value
    if isinstance(value, dict):
        found = {}
        for element, node in children.items():
            name = element[2:] if element.startswith("f:") else None
            if name is not None and name in value:
                found[name] = _part(node, value[name])
        return found
    if isinstance(value, list):
        items = [_item(element, node, value) for element, node in children.items()]
        return [item for item in items if item is not ABSENT]
    return value


def _item(element: str, node: FieldSet, items: list[Any]) -> Any:
    kind, text = element[:2], element[2:]
    try:
        wanted = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ABSENT
    if kind == "v:":
        return wanted if wanted in items else ABSENT
    if kind == "i:":
        return items[wanted] if isinstance(wanted, int) and wanted < len(items) else ABSENT
    if kind != "k:" or not isinstance(wanted, dict):
        return ABSENT
    for item in items:
        if isinstance(item, dict) and wanted.items() <= item.items():
            part = _part(node, item)
            return {**wanted, **part} if isinstance(part, dict) else item
    return ABSENT
