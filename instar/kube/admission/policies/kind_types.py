"""CEL type of a kind's objects, derived from its schema, for type checking of policies.

Called by ``server/registry/controllers/policy_types.py`` and the reviewer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from instar.kube.cel.types import DYN, Type
from instar.kube.facts.messages import META
from instar.kube.facts.types import schema_of
from instar.kube.schema.cel_rules.declare import declare
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural

_TEXT = Structural(type="string")


def object_type(schema: Structural | None, kind: str) -> Type:
    """Return the type of whole objects, metadata included; dynamic where the schema has no type."""
    if schema is None or schema.type != "object":
        return DYN
    head = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _metadata()}
    whole = replace(schema, properties={**schema.properties, **head})
    declared = declare(whole, root=True, name=kind)
    return DYN if declared is None else declared.type


@cache
def _metadata() -> Structural:
    found = schema_of(META, "ObjectMeta")
    assert found is not None
    return structural(found)
