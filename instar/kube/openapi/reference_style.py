"""The two spellings of a reference: everything else about a model is common to v2 and v3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object


class Dialect(NamedTuple):
    """``v2`` also stands for what kubectl's reader of v2 documents cannot cope with."""

    prefix: str
    v2: bool

    def ref(self, model: str, description: str = "") -> Object:
        """OpenAPI 3 ignores what stands beside a ``$ref``, so there it is wrapped."""
        target = {"$ref": self.prefix + model}
        if not description:
            return target
        if self.v2:
            return {"description": description, **target}
        return {"description": description, "allOf": [target]}

    def render(self, schema: Mapping[str, Any]) -> Object:
        """A model written with bare model names after ``$ref``, in this dialect."""
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
