"""Resources for tests, as small as the rule under test allows."""

from __future__ import annotations

from typing import Any

from instar.kube.api.crd import read_crd
from instar.kube.api.discovery import DiscoveryResource
from tests.support.corpus import corpus
from tests.support.crds import crd

NAMES = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}


def custom(
    *versions: dict[str, Any],
    group: str = "example.com",
    scope: str = "Namespaced",
    names: dict[str, Any] | None = None,
    conditions: tuple[str, ...] = ("NamesAccepted", "Established"),
    **spec: Any,
) -> DiscoveryResource:
    """A custom resource whose listed conditions are true; the first version is stored."""
    names = names or NAMES
    made = crd(*versions, group=group, plural=names["plural"], scope=scope, names=names, **spec)
    made["status"] = {
        "acceptedNames": names,
        "conditions": [{"type": kind, "status": "True"} for kind in conditions],
    }
    return DiscoveryResource(read_crd(made))


def builtin(
    group: str,
    plural: str,
    kind: str,
    *versions: dict[str, Any],
    scope: str = "Namespaced",
    verbs: tuple[str, ...] | None = None,
) -> DiscoveryResource:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    made = custom(*versions, group=group, scope=scope, names=names, conditions=())
    return DiscoveryResource(made.crd, builtin=True, verbs=verbs)


def established_corpus() -> list[DiscoveryResource]:
    """Every v1 CRD of the corpus as if established."""
    return [
        _established(obj)
        for _, obj in corpus()
        if obj.get("apiVersion") == "apiextensions.k8s.io/v1"
    ]


def _established(obj: dict[str, Any]) -> DiscoveryResource:
    names = obj["spec"]["names"]
    names.setdefault("listKind", f"{names['kind']}List")
    obj["status"] = {
        "acceptedNames": names,
        "conditions": [{"type": "Established", "status": "True"}],
    }
    return DiscoveryResource(read_crd(obj))
