"""Reads a class as a whole custom resource: its shape and its ``__crd__``.

Called by ``instar crd`` (``cli/commands/crd.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from instar.base.json_values import Object
from instar.kube.models.errors import ModelError
from instar.kube.models.reading.annotations import Reader, extra_of
from instar.kube.models.reading.docstrings import descriptions_of
from instar.kube.models.reading.fields import crd_attribute, fields_of, is_model
from instar.kube.models.shapes import FRAME, Frame, ModelShape, ShapeKind


def root_of(cls: Any) -> tuple[ModelShape, Object]:
    """Return the shape of a class's objects, and its ``__crd__``."""
    if not is_model(cls):
        name = getattr(cls, "__name__", None) or type(cls).__name__
        raise ModelError(
            f"{name} is neither a pydantic model nor a dataclass, a typed dict or a msgspec struct"
        )
    reader = Reader()
    members = reader.class_shape(cls, skipping=FRAME)
    framing = {field.name: field for field in fields_of(cls) if field.name in FRAME}
    shapes = {
        name: reader.shape(field.annotation, f"{cls.__name__}.{name}")
        for name, field in framing.items()
        if name != "metadata"
    }
    crd = crd_attribute(cls)
    said = {name: str((shapes[name].enum or (framing[name].default or "",))[0]) for name in shapes}
    version = str((crd.get("version") or {}).get("name") or "")
    kind = said.get("kind") or str((crd.get("names") or {}).get("kind") or "")
    api_version = said.get("apiVersion") or _api_version(crd, version)
    frame = Frame(api_version, kind or _kind(cls.__name__, version), _metadata(framing))
    shape = ModelShape(
        ShapeKind.CLASS, members=replace(members, frame=frame), doc=descriptions_of(cls).doc
    )
    return shape, crd


def _api_version(crd: Object, version: str) -> str:
    return f"{crd['group']}/{version}" if crd.get("group") and version else ""


def _kind(name: str, version: str) -> str:
    """Return the kind: ``WidgetV1`` of version v1 is a Widget."""
    return name.removesuffix(version.title()) if version else name


def _metadata(framing: dict[str, Any]) -> Object:
    """Return the keywords of ``metadata`` itself; the server defines its content."""
    field = framing.get("metadata")
    if field is None:
        return {}
    found: Object = {}
    carried = [*getattr(field.annotation, "__metadata__", ()), *field.carried]
    for item in carried:
        found.update(extra_of(item))
    return found
