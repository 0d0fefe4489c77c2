"""Conversion: reads and writes at either version of a CRD with a webhook, without one, and what
is said when the webhook fails. The recorder and the tests run the webhook (``hooks.py``)."""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object
from tests.recordings.scenarios import PARTIAL, TABLE, Scenario, a_version, with_spec
from tests.support.faults import ANSWER_FAULTS, HTTP_FAULTS

_V1 = with_spec(size={"type": "integer"}, name={"type": "string", "default": "one"})
_V2 = with_spec(
    replicas={"type": "integer"},
    name={"type": "string"},
    extra={"type": "string", "default": "two"},
)
_SLOW = (
    "endless",
    "bomb",
    "stalled",
    "truncated",
    "reset",
    "closed",
    "not_http",
    "annotations_too_long",
)


def _with_hook(name: str, converter: str, storage: str = "v1") -> Scenario:
    scenario = Scenario(name)
    status: Object = {"subresources": {"status": {}}}
    column = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    versions = [
        a_version("v1", _V1, storage=storage == "v1", additionalPrinterColumns=column, **status),
        a_version("v2", _V2, storage=storage == "v2", deprecated=True, **status),
    ]  # fmt: skip
    client = {"url": f"{{{{hook.url}}}}/convert/{converter}", "caBundle": "{{hook.ca}}"}
    conversion: Object = {"strategy": "None"}
    if converter != "none":
        conversion = {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
        }
    scenario.make_crd(scenario.crd(versions, conversion=conversion))
    return scenario


def _walk(scenario: Scenario, storage: str) -> Scenario:
    """Everything a client does, at both versions."""
    at = {version: scenario.path("foos", version=version) for version in ("v1", "v2")}
    scenario.post(
        at["v1"], scenario.object("a", spec={"size": 1}, metadata={"labels": {"l": "1"}}), "a"
    )
    scenario.post(at["v2"], scenario.object("b", version="v2", spec={"replicas": 2}), "b")
    for version in ("v1", "v2"):
        own = "size" if version == "v1" else "replicas"
        for name in ("a", "b"):
            path = f"{at[version]}/{name}"
            scenario.get(path)
            scenario.get(path, "table", accept=TABLE)
            scenario.get(path, "partial", accept=PARTIAL)
            scenario.put(
                path, scenario.object(name, version=version, spec={own: 5, "name": "put"}), "put"
            )
            scenario.merge(path, {"spec": {own: 6}}, "merged")
            scenario.merge(path, {"spec": {own: "x"}}, "merged wrongly")
            scenario.merge(path, {"spec": {"unknown": 1}}, "merged unknown")
            scenario.json_patch(
                path, [{"op": "replace", "path": f"/spec/{own}", "value": 7}], "json patch"
            )
            scenario.apply(
                path,
                scenario.object(name, version=version, spec={own: 8}),
                "ann",
                "applied",
                force=True,
            )
            scenario.apply(
                path, scenario.object(name, version=version, spec={own: 9}), "bob", "in conflict"
            )
            scenario.merge(f"{path}/status", {"status": {"x": 1}}, "status")
        scenario.get(at[version], "list")
        scenario.get(f"{at[version]}?limit=1", "page")
        scenario.get(at[version], "listed as a table", accept=TABLE)
        scenario.post(
            f"{at[version]}?dryRun=All",
            scenario.object("dry", version=version, spec={own: 1}),
            "dry",
        )
        scenario.post(at[version], scenario.object("a", version=version, spec={own: 1}), "exists")
        scenario.watch(
            f"{at[version]}?resourceVersion={{{{a.metadata.resourceVersion}}}}", 3, "watch"
        )
    scenario.post(at["v1"], scenario.object("c", version="v2", spec={}), "version of the body")
    scenario.delete(f"{at['v2']}/a", None, "delete")
    scenario.delete(at["v1"], None, "delete all")
    return scenario


def _faults() -> Iterator[Scenario]:
    names = [name for name in (*ANSWER_FAULTS, *HTTP_FAULTS) if name not in _SLOW]
    for name in names:
        scenario = _with_hook(f"fault-{name.replace('_', '-')}", name)
        v1, v2 = scenario.path("foos"), scenario.path("foos", version="v2")
        scenario.post(v1, scenario.object("a", spec={"size": 1}))
        scenario.get(f"{v2}/a", "get")
        scenario.get(v2, "list")
        scenario.post(v2, scenario.object("b", version="v2", spec={"replicas": 1}), "create")
        scenario.get(f"{v1}/a", "at the storage version")
        yield scenario


def scenarios() -> Iterator[Scenario]:
    for converter in ("none", "relabel", "rename", "label"):
        for storage in ("v1", "v2"):
            yield _walk(_with_hook(f"convert-{converter}-{storage}", converter, storage), storage)
    scenario = _with_hook("convert-refuse", "refuse")
    v1, v2 = scenario.path("foos"), scenario.path("foos", version="v2")
    for name in ("good", "bad"):
        scenario.post(v1, scenario.object(name, spec={"size": 1}))
        scenario.post(v2, scenario.object(f"{name}2", version="v2", spec={"replicas": 1}))
        scenario.get(f"{v2}/{name}")
        scenario.merge(f"{v2}/{name}", {"spec": {"replicas": 2}})
        scenario.delete(f"{v2}/{name}", {"dryRun": ["All"]})
    scenario.get(v2, "list")
    yield scenario
    yield from _faults()
