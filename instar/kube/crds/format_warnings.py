"""Warnings for unrecognised ``format`` values in a CRD's schemas.

Called by ``server/registry/kinds/crds.py`` on every CRD write.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object
from instar.kube.crds.validation.options import schemas_of
from instar.kube.crds.validation.unsupported_schema import nodes
from instar.kube.schema.formats.named import string_format
from instar.kube.schema.validation.numbers import NUMBER_FORMATS


def format_warnings(new: Object, old: Object | None) -> list[str]:
    """Return one text per unrecognised format; on update only for formats that are new."""
    known_before = set() if old is None else set(_unrecognised(old["spec"]))
    found = dict.fromkeys(_unrecognised(new["spec"]))
    return [f'unrecognized format "{name}"' for name in found if name not in known_before]


def _unrecognised(spec: Object) -> Iterator[str]:
    for schema in schemas_of(spec):
        for node in nodes(schema):
            format = node.get("format")
            if format and not _is_known(format, node.get("type", "")):
                yield format


def _is_known(format: str, type: str) -> bool:
    if type in ("", "string"):
        return string_format(format) is not None
    return format in NUMBER_FORMATS.get(type, ())
