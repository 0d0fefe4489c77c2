"""``Dialect``: how v2 and v3 documents write ``$ref``; models are otherwise the same.

Used by all modules that build models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object


class Dialect(NamedTuple):
    """``v2`` also drops what kubectl's reader of v2 documents cannot handle."""

    prefix: str
    v2: bool

    def ref(self, model: str, description: str = "") -> Object:
        """Return a reference; OpenAPI 3 ignores siblings of ``$ref``, so there it is wrapped."""
        target = {"$ref": self.prefix + model}
        if not description:
            return target
        if self.v2:
            return {"description": description, **target}
        return {"description": description, "allOf": [target]}

    def render(self, schema: Mapping[str, Any]) -> Object:
        """Convert a model with bare model names in ``$ref`` to this dialect."""
        said = {k: v for k, v in schema.items() if not (self.v2 and k == "default")}
        if "$ref" in schema:
            target = {"$ref": self.prefix + said.pop("$ref")}
            return {**said, **(target if self.v2 or not said else {"allOf": [target]})}
        out = said
        if "properties" in schema:
            out["properties"] = {k: self.render(v) for k, v in schema["properties"].items()}
        for keyword in ("items", "additionalProperties"):
            if isinstance(schema.get(keyword), Mapping):
                out[keyword] = self.render(schema[keyword])
        return out


V2 = Dialect("#/definitions/", v2=True)
V3 = Dialect("#/components/schemas/", v2=False)
