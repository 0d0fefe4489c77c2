"""Limit on the number of schemas inside a CRD version's schema.

``server/registry/kinds/crds.py`` calls it before any other check of a CRD, because all of them
traverse the schema, and the first object of the version waits until the schema is compiled. The
checks and the compilation take time in proportion to the number of schemas, which one fast
traversal counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from instar.base.field_errors import FieldError, child, index, too_many
from instar.base.json_values import Object
from instar.base.limits import MAX_SCHEMA_NODES
from instar.kube.crds.validation.unsupported_schema import nodes


def schema_size_errors(spec: Object, old: Object | None = None) -> list[FieldError]:
    """Return an error for each schema of an internal spec that is too large, unless ``old``, the
    stored spec, has the same one."""
    kept = [schema for _, schema in _schemas(old or {})]
    return [
        too_many(path, MAX_SCHEMA_NODES + 1, MAX_SCHEMA_NODES)
        for path, schema in _schemas(spec)
        if _is_large(schema) and schema not in kept
    ]


def _schemas(spec: Object) -> Iterator[tuple[str, Any]]:
    holders = [("spec.validation", spec.get("validation"))]
    for position, version in enumerate(spec.get("versions") or ()):
        holders.append((child(index("spec.versions", position), "schema"), version.get("schema")))
    for path, holder in holders:
        schema = (holder or {}).get("openAPIV3Schema")
        if isinstance(schema, dict):
            yield child(path, "openAPIV3Schema"), schema


def _is_large(schema: Object) -> bool:
    return next(islice(nodes(schema), MAX_SCHEMA_NODES, None), None) is not None
