"""Deletion (finalizers, propagation, preconditions, collections), status and scale, and changes of
CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.recordings.scenarios import CRDS, Scenario, a_version, with_spec

_SCHEMA = with_spec(a={"type": "string"}, n={"type": "integer"})
_SCHEMA["properties"]["status"] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "replicas": {"type": "integer"},
    },
}
_OPTIONS: list[Any] = [
    None, {}, {"propagationPolicy": "Background"}, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Other"}, {"propagationPolicy": ""}, {"orphanDependents": True},
    {"orphanDependents": False}, {"orphanDependents": True, "propagationPolicy": "Orphan"}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 30}, {"gracePeriodSeconds": -1}, {"gracePeriodSeconds": "x"},
    {"preconditions": {"uid": "other"}}, {"preconditions": {"resourceVersion": "1"}}, {"preconditions": {"uid": "{{made.metadata.uid}}"}}, {"preconditions": {"resourceVersion": "{{made.metadata.resourceVersion}}"}},
    {"dryRun": ["All"]}, {"dryRun": ["Some"]}, {"dryRun": "All"}, {"unknown": 1}, {"kind": "DeleteOptions", "apiVersion": "v1"}, {"kind": "Other", "apiVersion": "v1"}, {"kind": "DeleteOptions", "apiVersion": "v2"},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True}, "{", "[]", "null", 5,
]  # fmt: skip


def _deletions() -> Iterator[Scenario]:
    for name, builtin in (("deleting", False), ("deleting-maps", True)):
        for held in (False, True):
            scenario = Scenario(f"{name}-{'held' if held else 'free'}")
            if builtin:
                path, own = (
                    scenario.path("configmaps", group=""),
                    {"apiVersion": "v1", "kind": "ConfigMap"},
                )
            else:
                scenario.make_crd(scenario.crd(_SCHEMA))
                path, own = (
                    scenario.path("foos"),
                    {"apiVersion": f"{scenario.group}/v1", "kind": "Foo"},
                )
            for place, options in enumerate(_OPTIONS):
                metadata: dict[str, Any] = {
                    "name": f"o{place}",
                    **({"finalizers": ["rec.example/f"]} if held else {}),
                }
                scenario.post(path, {**own, "metadata": metadata}, "made", only_code=True)
                scenario.delete(f"{path}/o{place}", options, f"delete {place}")
                if held:
                    scenario.delete(f"{path}/o{place}", None, "again")
                    scenario.merge(
                        f"{path}/o{place}", {"metadata": {"labels": {"a": "b"}}}, "labelled"
                    )
                    scenario.merge(
                        f"{path}/o{place}", {"metadata": {"finalizers": None}}, "released"
                    )
            for query in (
                "gracePeriodSeconds=5",
                "propagationPolicy=Foreground",
                "propagationPolicy=x",
                "dryRun=All",
                "orphanDependents=true",
                "gracePeriodSeconds=x",
            ):
                scenario.post(path, {**own, "metadata": {"name": "q"}}, "made", only_code=True)
                scenario.delete(f"{path}/q?{query}", None, query)
            scenario.delete(f"{path}/none", None, "none")
            scenario.delete(
                f"{path}/none?dryRun=All",
                {"preconditions": {"uid": "x"}},
                "none with preconditions",
            )
            scenario.delete(f"{path}?labelSelector=a=b&dryRun=All", None, "collection dry")
            scenario.delete(f"{path}?labelSelector=a%20b", None, "bad selector")
            scenario.delete(f"{path}?limit=1", None, "one of a collection", only_failure=True)
            scenario.delete(
                f"{path}?labelSelector=a=b", {"propagationPolicy": "Other"}, "bad options"
            )
            scenario.delete(path, None, "collection", only_failure=True)
            yield scenario


def _parts() -> Iterator[Scenario]:
    scenario = Scenario("parts")
    scale = {
        "specReplicasPath": ".spec.n",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.s",
    }
    scenario.make_crd(
        scenario.crd([a_version("v1", _SCHEMA, subresources={"status": {}, "scale": scale})])
    )
    foos, path = scenario.path("foos"), scenario.path("foos", "p")
    scenario.post(foos, scenario.object("p", spec={"n": 2}, status={"n": 9}), "made")
    scenario.get(f"{path}/status")
    scenario.get(f"{path}/scale")
    statuses: list[Any] = [
        {"n": 1},
        {"n": "x"},
        {"replicas": 3, "s": "a=b"},
        {"unknown": 1},
        {},
        None,
        [],
        5,
    ]
    for status in statuses:
        scenario.put(
            f"{path}/status",
            scenario.object("p", spec={"n": 7}, status=status, metadata={"labels": {"x": "y"}}),
            "put status",
        )
        scenario.merge(
            f"{path}/status",
            {"status": status, "spec": {"n": 8}, "metadata": {"annotations": {"a": "b"}}},
            "merge status",
        )
        scenario.json_patch(
            f"{path}/status", [{"op": "add", "path": "/status", "value": status}], "patch status"
        )
        scenario.put(path, scenario.object("p", spec={"n": 3}, status=status), "put")
    base = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "p", "namespace": scenario.name},
    }
    spec: Any
    for spec in (
        {"replicas": 5},
        {"replicas": 0},
        {"replicas": -1},
        {"replicas": "x"},
        {},
        {"replicas": 2**31},
        None,
        {"replicas": 5, "unknown": 1},
    ):
        scenario.put(f"{path}/scale", {**base, "spec": spec}, "put scale")
        scenario.merge(f"{path}/scale", {"spec": spec}, "merge scale")
        scenario.get(f"{path}/scale", "scale")
    changed: Any
    for changed in (
        {"kind": "Other"},
        {"apiVersion": "v1"},
        {"metadata": {"name": "q"}},
        {"metadata": {"name": "p", "resourceVersion": "1"}},
        {"metadata": {}},
    ):
        scenario.put(f"{path}/scale", {**base, "spec": {"replicas": 1}, **changed}, "odd scale")
    for verb in ("POST", "DELETE"):
        scenario.ask(
            verb,
            f"{path}/status",
            scenario.object("p") if verb == "POST" else None,
            f"{verb} status",
        )
        scenario.ask(verb, f"{path}/scale", base if verb == "POST" else None, f"{verb} scale")
    scenario.get(f"{scenario.path('foos', 'none')}/scale", "no such object")
    scenario.merge(f"{scenario.path('foos', 'none')}/status", {"status": {}}, "no such object")
    scenario.get(path, "at last")
    yield scenario
    built_in = Scenario("parts-builtin")
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "x:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    for resource in ("deployments", "replicasets", "statefulsets"):
        where = built_in.path(resource, "d", group="apps")
        more = {"serviceName": "s"} if resource == "statefulsets" else {}
        built_in.post(
            built_in.path(resource, group="apps"),
            {"metadata": {"name": "d"}, "spec": {**spec, **more}},
            "made",
        )
        for replicas in (3, -1, "x", 0):
            built_in.merge(f"{where}/scale", {"spec": {"replicas": replicas}}, f"{resource} scale")
        built_in.get(f"{where}/scale", f"{resource} scale")
        for status in (
            {"replicas": 1, "observedGeneration": 1},
            {"replicas": -1},
            {"readyReplicas": 5, "replicas": 1},
            {"conditions": [{"type": "X", "status": "True"}]},
            {"conditions": [{}]},
            {"unknown": 1},
        ):
            built_in.merge(
                f"{where}/status", {"status": status, "spec": {"replicas": 9}}, f"{resource} status"
            )
    pods = built_in.path("pods", group="")
    built_in.post(
        pods,
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}},
        "pod",
    )
    for status in (
        {"phase": "Running"},
        {"phase": "Odd"},
        {"podIP": "1.2.3.4"},
        {"podIP": "x"},
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {
            "containerStatuses": [
                {"name": "c", "image": "x", "imageID": "", "ready": True, "restartCount": 0}
            ]
        },
    ):
        built_in.merge(f"{pods}/p/status", {"status": status}, "pod status")
    for body in (
        {"target": {"kind": "Node", "name": "n"}},
        {"target": {"name": ""}},
        {"metadata": {"name": "p"}, "target": {"name": "n"}},
        {},
    ):
        built_in.post(f"{pods}/p/binding", body, "binding")
    built_in.post(f"{pods}/p/eviction", {"metadata": {"name": "p"}}, "eviction")
    for change in (
        {"spec": {"containers": [{"name": "c", "image": "x:2"}]}},
        {"spec": {"containers": [{"name": "c", "image": ""}]}},
        {"spec": {"nodeName": "m"}},
        {"spec": {"activeDeadlineSeconds": 5}},
        {"spec": {"hostNetwork": True}},
    ):
        built_in.strategic(f"{pods}/p", change, "pod changed")
    built_in.delete(f"{pods}/p", None, "pod deleted")
    built_in.delete(f"{pods}/p", {"gracePeriodSeconds": 0}, "pod gone")
    yield built_in


def _crd_changes() -> Scenario:
    scenario = Scenario("crd-changes")
    document = scenario.crd([a_version("v1", _SCHEMA), a_version("v2", _SCHEMA, storage=False)])
    scenario.make_crd(document)
    path = f"{CRDS}/{document['metadata']['name']}?dryRun=All"
    v1, v2 = document["spec"]["versions"]
    changes: list[Any] = [
        {"spec": {"group": "other.rec.example"}}, {"spec": {"scope": "Cluster"}}, {"spec": {"names": {"kind": "Bar"}}}, {"spec": {"names": {"plural": "bars"}}}, {"spec": {"names": {"shortNames": ["f"]}}},
        {"spec": {"versions": [v1]}}, {"spec": {"versions": [v2]}}, {"spec": {"versions": [{**v1, "storage": False}, {**v2, "storage": True}]}}, {"spec": {"versions": [{**v1, "served": False}, v2]}}, {"spec": {"versions": []}},
        {"spec": {"versions": [{**v1, "schema": None}, v2]}}, {"spec": {"versions": None}}, {"spec": {"preserveUnknownFields": True}}, {"spec": {"conversion": {"strategy": "Webhook"}}}, {"spec": None}, {"status": {"storedVersions": ["v9"]}},
        {"metadata": {"labels": {"a b": "c"}}}, {"metadata": {"name": "x"}}, {"spec": {"names": {"categories": ["all"]}}}, {"spec": {"versions": [v1, v2, a_version("v3", _SCHEMA, storage=False)]}},
    ]  # fmt: skip
    for change in changes:
        scenario.merge(path, change, only_failure=True)
    for stored in (["v1"], ["v2"], [], ["v1", "v2"], ["v1", "v1"], ["v9"], None):
        scenario.merge(
            path.replace("?", "/status?"),
            {"status": {"storedVersions": stored}},
            "stored",
            only_failure=True,
        )
    for condition in ({"type": "X", "status": "True"}, {"type": "", "status": ""}, {}):
        scenario.merge(
            path.replace("?", "/status?"),
            {"status": {"conditions": [condition]}},
            "condition",
            only_failure=True,
        )
    scenario.get(f"{CRDS}/none.rec.example")
    scenario.put(f"{CRDS}/none.rec.example", document)
    scenario.post(CRDS, document, "exists")
    return scenario


def scenarios() -> Iterator[Scenario]:
    yield from _deletions()
    yield from _parts()
    yield _crd_changes()
