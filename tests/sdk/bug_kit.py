"""Schemas and helpers that ``converter_bugs.py`` builds its converters from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from instar.sdk import Converter
from tests.support.crds import crd, fields, version

GROUP = "example.com"
Spec = dict[str, Any]
Change = Callable[[Spec], None]
BUGS: dict[str, tuple[dict[str, Any], Converter]] = {}

TEXT: Spec = {"type": "string"}
COUNT: Spec = {"type": "integer"}
WIDE: Spec = {"type": "integer", "format": "int64"}
NUMBER: Spec = {"type": "number"}
FLAG: Spec = {"type": "boolean"}
TEXTS: Spec = {"type": "array", "items": TEXT}
MAP: Spec = {"type": "object", "additionalProperties": TEXT}
PORT: Spec = {"x-kubernetes-int-or-string": True}
TIME: Spec = {"type": "string", "format": "date-time"}
PAIRS: Spec = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT, "value": TEXT},
    },
}


def definition(old: Spec, new: Spec) -> dict[str, Any]:
    """A CRD of which v1 has the one spec and v2 the other."""
    versions = [
        version(name, fields(spec=fields(**spec)), storage=name == "v2")
        for name, spec in (("v1", old), ("v2", new))
    ]
    return crd(*versions, group=GROUP, plural="jobs", kind="Job")


def on_spec(change: Change) -> Callable[[dict[str, Any]], None]:
    def step(obj: dict[str, Any]) -> None:
        if isinstance(obj.get("spec"), dict):
            change(obj["spec"])

    return step


def converter(up: Callable[..., Any], down: Callable[..., Any]) -> Converter:
    made = Converter("Job", group=GROUP, hub="v2")
    made.convert("v1", "v2")(up)
    made.convert("v2", "v1")(down)
    return made


def nothing(obj: dict[str, Any]) -> None:
    """The right conversion between two versions that are alike."""


same = converter(nothing, nothing)


def bug(old: Spec, new: Spec | None = None) -> Callable[[type], type]:
    """Class decorator: ``up`` and ``down`` of the class become a converter of its name.

    They take the spec, or the whole object where the class says ``whole``.
    """

    def register(cls: type) -> type:
        wrap = (lambda step: step) if getattr(cls, "whole", False) else on_spec
        up, down = getattr(cls, "up", None), getattr(cls, "down", None)
        made = converter(wrap(up) if up else nothing, wrap(down) if down else nothing)
        name = cls.__name__
        # A second process imports the converter as an attribute of the module that defines it.
        setattr(sys.modules[cls.__module__], f"made_{name}", made)
        BUGS[name] = (definition(old, new if new is not None else old), made)
        return cls

    return register
