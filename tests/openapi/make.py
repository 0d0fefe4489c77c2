"""Resources for tests, as small as the rule under test allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.api.crd import read_crd
from instar.api.discovery import Resource

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
NAMES = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}


def version(name: str = "v1", **more: Any) -> dict[str, Any]:
    schema = more.pop("schema", {"type": "object"})
    wrapped = {} if schema is None else {"schema": {"openAPIV3Schema": schema}}
    return {"name": name, "served": True, "storage": False, **wrapped, **more}


def custom(
    *versions: dict[str, Any],
    group: str = "example.com",
    scope: str = "Namespaced",
    names: dict[str, Any] | None = None,
    conditions: tuple[str, ...] = ("NamesAccepted", "Established"),
    **spec: Any,
) -> Resource:
    """A custom resource whose listed conditions are true; the first version is stored."""
    listed = [dict(item) for item in versions or (version(),)]
    if not any(item["storage"] for item in listed):
        listed[0]["storage"] = True
    names = names or NAMES
    return Resource(
        read_crd(
            {
                "metadata": {"name": f"{names['plural']}.{group}"},
                "spec": {
                    "group": group,
                    "scope": scope,
                    "names": names,
                    "versions": listed,
                    **spec,
                },
                "status": {
                    "acceptedNames": names,
                    "conditions": [{"type": kind, "status": "True"} for kind in conditions],
                },
            }
        )
    )


def builtin(
    group: str,
    plural: str,
    kind: str,
    *versions: dict[str, Any],
    scope: str = "Namespaced",
    verbs: tuple[str, ...] | None = None,
) -> Resource:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    made = custom(*versions, group=group, scope=scope, names=names, conditions=())
    return Resource(made.crd, builtin=True, verbs=verbs)


def corpus() -> list[Resource]:
    """Every v1 CRD of the corpus as if established."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}")
    return [
        _established(obj)
        for path in sorted(CORPUS.glob("*/*/*.yaml"))
        for obj in yaml.load_all(path.read_text(), yaml.CSafeLoader)
        if obj and obj.get("apiVersion") == "apiextensions.k8s.io/v1"
    ]


def _established(obj: dict[str, Any]) -> Resource:
    names = obj["spec"]["names"]
    names.setdefault("listKind", f"{names['kind']}List")
    obj["status"] = {
        "acceptedNames": names,
        "conditions": [{"type": "Established", "status": "True"}],
    }
    return Resource(read_crd(obj))
