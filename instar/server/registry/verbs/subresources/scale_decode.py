"""Decodes an ``autoscaling/v1`` Scale as Go does: checks types and lists unknown fields.

``scaling.py`` and ``server/rest/scaling.py`` call it. ``scale.py`` applies a Scale to an object.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.schema.metadata.object_meta import coerce_metadata
from instar.kube.schema.metadata.types import Decoder, MetaError, struct, text, wrong

_MAX, _MIN = 2**31 - 1, -(2**31)


def decode_scale(body: Object) -> tuple[Object, list[str]]:
    """Return the clean Scale and the paths of its unknown fields. Raises ``MetaError``."""
    metadata, unknown = coerce_metadata(body.get("metadata"))
    scale: Object = {
        "kind": body.get("kind"),
        "apiVersion": body.get("apiVersion"),
        "metadata": metadata,
        "spec": _member(body, "spec", "ScaleSpec", _SPEC, unknown),
        "status": _member(body, "status", "ScaleStatus", _STATUS, unknown),
    }
    return scale, sorted([*unknown, *(name for name in body if name not in scale)])


def _member(
    body: Object, name: str, go_name: str, fields: dict[str, Decoder], unknown: list[str]
) -> Object:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(value, f"Scale.{name}", f"v1.{go_name}")
    return struct(value, go_name, name, name, fields, unknown)


def _int32(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(value, where, "int32")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, float) or not _MIN <= value <= _MAX:
        raise MetaError(
            f"json: cannot unmarshal number {value} into Go struct field {where} of type int32"
        )
    return value


_SPEC: dict[str, Decoder] = {"replicas": _int32}
_STATUS: dict[str, Decoder] = {"replicas": _int32, "selector": text()}
