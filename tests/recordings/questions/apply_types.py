"""Apply of values of every type into fields of every type, apply of the same configuration again
at a version with a default that the storage version lacks, and unknown paths and methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import Scenario, a_version, with_spec

_EITHER: Object = {"x-kubernetes-int-or-string": True}
_STRING: Object = {"type": "string"}
_ITEM: Object = {"type": "object", "required": ["k"], "properties": {"k": _EITHER, "v": _EITHER}}
_KEYED: Object = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
_FIELDS: dict[str, Object] = {
    "either": _EITHER,
    "list": {"type": "array", "items": _EITHER},
    "number": {"type": "integer"},
    "text": _STRING,
    "map": {"type": "object", "additionalProperties": _EITHER},
    "object": {"type": "object", "properties": {"x": _STRING}},
    "texts": {"type": "array", "items": _STRING},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _EITHER},
    "keyed": {"type": "array", "items": _ITEM, **_KEYED},
}
_VALUES: list[Any] = [5, "x", True, 1.5, None, [], {}, [1], {"a": 1}, ["x"], [{"k": 1}], [[]]]
_PATHS = [
    "/api/v2", "/api/v2/pods", "/api/v1/none", "/api/v1/pods/x", "/api/v1/namespaces/x/nodes",
    "/api/v1/namespaces/x/none/y", "/api/v1/namespaces/x/pods/y/none", "/api/v1/nodes/x/none",
    "/apis/apps/v2", "/apis/apps/v2/x", "/apis/apps/v1/none", "/apis/apps/v1/deployments/x",
    "/apis/apps/v1/namespaces/x", "/version/x", "/apis/apps", "/api", "/openapi/v2/x",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/x/clusterroles", "/api/v1/watch/none",
    "/apis/authentication.k8s.io/v1/none", "/.well-known/none", "/readyz/none", "/metrics/x",
]  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    yield _types()
    yield _again()
    yield _paths()


def _types() -> Scenario:
    scenario = Scenario("apply-types")
    scenario.make_crd(scenario.crd(with_spec(**_FIELDS)))
    for field in _FIELDS:
        for number, value in enumerate(_VALUES):
            name = f"{field}-{number}"
            body = scenario.object(name, spec={field: value})
            scenario.apply(scenario.path("foos", name), body, "manager")
    return scenario


def _again() -> Scenario:
    scenario = Scenario("apply-again")
    stored = a_version("v1", with_spec(a=_STRING))
    other = a_version("v2", with_spec(a=_STRING, b={**_STRING, "default": "x"}), storage=False)
    scenario.make_crd(scenario.crd([stored, other]))
    path = scenario.path("foos", "o", version="v2")
    for spec in ({"a": "1"}, {"a": "1"}, {"a": "1"}, {"a": "1", "b": "y"}, {"a": "1"}, {"a": "1"}):
        scenario.apply(path, scenario.object("o", version="v2", spec=spec), "manager")
    scenario.merge(path, {"spec": {"a": "1"}})
    scenario.apply(path, scenario.object("o", version="v2", spec={"a": "1"}), "manager")
    return scenario


def _paths() -> Scenario:
    scenario = Scenario("unknown-paths")
    for path in _PATHS:
        for method in ("GET", "PUT", "POST", "DELETE"):
            scenario.ask(method, path, {} if method in ("PUT", "POST") else None)
    return scenario
