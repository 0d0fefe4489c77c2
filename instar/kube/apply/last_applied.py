"""kubectl's ``last-applied-configuration`` annotation: migration from client-side apply and back.

Called by ``applying.py``, only for manager ``kubectl``. That manager may take over, without a
conflict, the fields that the annotation still describes. While the annotation exists, server-side
applies update it.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.base.json_values import copy_json
from instar.kube.apply.compare import compare
from instar.kube.apply.field_set import FieldSet, difference, union, value_text
from instar.kube.apply.owned_paths import owned_in_object
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.apply.validate import type_problems

MANAGER = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MOST_ANNOTATION_BYTES = 256 * 1024


def still_applied_fields(schema: TypedSchema, live: dict[str, Any], api_version: str) -> FieldSet:
    """Return the paths that still have the value which kubectl last applied on the client side."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return {}
    try:
        applied = orjson.loads(text)
    except ValueError:
        return {}
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
        return {}
    if type_problems(schema, applied):
        return {}
    change = compare(schema, applied, live)
    return difference(owned_in_object(schema, applied), union(change.touched(), change.removed))


def update_annotation(obj: dict[str, Any], config: dict[str, Any]) -> None:
    """Set the annotation of ``obj``, if it has one, to ``config``. Changes ``obj``."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return
    described = copy_json(config)
    _annotations(described).pop(ANNOTATION, None)
    annotations[ANNOTATION] = value_text(described) + "\n"
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > (
        MOST_ANNOTATION_BYTES
    ):
        del annotations[ANNOTATION]


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
