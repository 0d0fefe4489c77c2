"""A generated module, imported, and read back."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from instar.base.json_values import Object
from instar.kube.crds.documents import read_definition
from instar.kube.models.crd_models import Defaults, VersionModel, build_crd, version_models
from instar.kube.models.modules import module_of
from instar.kube.models.reading.roots import root_of
from instar.tools.reviewer.normal_form import normalise

STYLES = ("pydantic", "dataclass", "typeddict", "msgspec")
_numbers = itertools.count(1)


def crd(schema: Object, **spec: Any) -> Object:
    """A CRD of one version."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
                }
            ],
            **spec,
        },
    }


def imported_text(text: str, folder: Path) -> ModuleType:
    """The text as a module with a name of its own."""
    name = f"generated_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def class_name(roots: list[VersionModel], root: VersionModel) -> str:
    return root.kind if len(roots) == 1 else f"{root.kind}{root.version.title()}"


def there_and_back(raw: Object, style: str, folder: Path) -> Object:
    """The CRD of the models of a CRD in v1 form."""
    roots = list(version_models(raw))
    module = imported_text(module_of(roots, style), folder)
    names = [class_name(roots, root) for root in roots]
    models = [(name, *root_of(getattr(module, name))) for name in names]
    return read_definition(build_crd(models, Defaults())).raw


def comparable(raw: Object) -> Any:
    """Without what the docs say may differ."""
    kept = {name: value for name, value in raw.items() if name != "status"}
    versions = [
        {
            **version,
            "schema": _without_frame(normalise(version["schema"]["openAPIV3Schema"])),
        }
        for version in raw["spec"]["versions"]
    ]
    return _told({**kept, "spec": {**raw["spec"], "versions": versions}})


def _without_frame(schema: Object) -> Object:
    properties = dict(schema.get("properties") or {})
    metadata = dict(properties.get("metadata") or {"type": "object"})
    metadata.pop("description", None)
    frame = {"apiVersion": None, "kind": None, "metadata": metadata}
    return {**schema, "properties": {**properties, **frame}}


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: " ".join(each.split())
            if name == "description" and isinstance(each, str)
            else sorted(map(str, each))
            if name == "enum" and isinstance(each, list)
            else _told(each)
            for name, each in value.items()
        }
    return [_told(each) for each in value] if isinstance(value, list) else value
