"""Server-side apply: managers that share, fight over, give up and take fields, of a custom
resource and of built-in kinds; random sequences from a seed; who owns what is kept."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import Scenario, a_version, with_spec

_STRING: Object = {"type": "string"}
_MANAGERS = ("ann", "bob", "cyd")
_KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
_ITEM = {
    "type": "object",
    "properties": {"k": _STRING, "v": _STRING, "w": _STRING},
    "required": ["k"],
}
_SCHEMA = with_spec(
    a=_STRING, b=_STRING, n={"type": "integer"}, d={**_STRING, "default": "x"},
    set={"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
    keyed={"type": "array", "items": _ITEM, **_KEYED},
    atomic={"type": "array", "items": _STRING},
    whole={"type": "object", "properties": {"p": _STRING, "q": _STRING}, "x-kubernetes-map-type": "atomic"},
    map={"type": "object", "additionalProperties": _STRING},
    deep={"type": "object", "properties": {"x": {"type": "object", "properties": {"y": _STRING, "z": _STRING}}}},
    any={"x-kubernetes-preserve-unknown-fields": True},
    ios={"x-kubernetes-int-or-string": True},
)  # fmt: skip
_SCHEMA["properties"]["status"] = {"type": "object", "properties": {"s": _STRING, "t": _STRING}}
_CHOICES: dict[str, list[Any]] = {
    "a": ["1", "2"], "b": ["1", "2"], "n": [1, 2], "d": ["x", "y"], "set": [["p"], ["p", "q"], ["q", "r"], []],
    "keyed": [[{"k": "one", "v": "1"}], [{"k": "one", "w": "2"}, {"k": "two"}], [{"k": "two", "v": "3"}], []],
    "atomic": [["m"], ["m", "n"], []], "whole": [{"p": "1"}, {"q": "2"}, {}],
    "map": [{"i": "1"}, {"i": "2", "j": "1"}, {}], "deep": [{"x": {"y": "1"}}, {"x": {"z": "1"}}, {"x": {}}, {}],
    "any": [{"u": 1}, {"u": 2, "v": [1]}, ["x"], 5], "ios": [5, "5"],
}  # fmt: skip


def _spec(dice: random.Random) -> Object:
    names = dice.sample(sorted(_CHOICES), dice.randrange(1, 4))
    return {name: dice.choice(_CHOICES[name]) for name in names}


def _with_crd(name: str) -> Scenario:
    scenario = Scenario(name, managed=True)
    scenario.make_crd(scenario.crd([a_version("v1", _SCHEMA, subresources={"status": {}})]))
    return scenario


def _random(part: int) -> Scenario:
    """Applies, forced applies, updates and patches in any order."""
    dice = random.Random(1000 + part)
    scenario = _with_crd(f"apply-random-{part}")
    for number in range(3):
        name = f"o{number}"
        path = scenario.path("foos", name)
        for _ in range(14):
            manager, act = dice.choice(_MANAGERS), dice.randrange(10)
            body = scenario.object(name, spec=_spec(dice))
            if act < 6:
                scenario.apply(
                    path, body, manager, f"apply {manager}", force=act < 2, unordered=True
                )
            elif act < 8:
                scenario.merge(
                    f"{path}?fieldManager={manager}", {"spec": _spec(dice)}, f"patch {manager}"
                )
            elif act == 8:
                scenario.apply(
                    f"{path}/status",
                    scenario.object(name, status={"s": dice.choice("12")}),
                    manager,
                    f"status {manager}",
                    unordered=True,
                )
            else:
                scenario.put(
                    f"{path}?fieldManager={manager}",
                    {**body, "metadata": {"name": name, "labels": {"l": dice.choice("12")}}},
                    f"put {manager}",
                )
    return scenario


def _refusals() -> Scenario:
    scenario = _with_crd("apply-refusals")
    foos, path = scenario.path("foos"), scenario.path("foos", "a")
    good = scenario.object("a", spec={"a": "1"})
    scenario.ask("PATCH", path, good, "no manager", media="application/apply-patch+yaml")
    scenario.apply(path, good, "", "empty manager")
    scenario.apply(path, good, "x" * 128, "long manager")
    scenario.apply(path, good, "x" * 129, "too long manager")
    scenario.apply(path, good, "a%0Ab", "unprintable manager")
    scenario.apply(path, "a: [", "ann", "broken yaml")
    scenario.apply(path, "", "ann", "empty")
    scenario.apply(path, "5", "ann", "number")
    scenario.apply(path, "[]", "ann", "list")
    scenario.apply(path, "null", "ann", "null")
    for missing in ("apiVersion", "kind", "metadata"):
        scenario.apply(
            path,
            {key: each for key, each in good.items() if key != missing},
            "ann",
            f"no {missing}",
        )
    scenario.apply(path, {**good, "kind": "Bar"}, "ann", "other kind")
    scenario.apply(path, {**good, "apiVersion": "v1"}, "ann", "other version")
    scenario.apply(path, {**good, "metadata": {"name": "b"}}, "ann", "other name")
    scenario.apply(
        path, {**good, "metadata": {"name": "a", "namespace": "other"}}, "ann", "other namespace"
    )
    scenario.apply(
        path,
        {**good, "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}},
        "ann",
        "managed fields",
    )
    scenario.apply(
        path, {**good, "metadata": {"name": "a", "managedFields": []}}, "ann", "no managed fields"
    )
    scenario.apply(
        path, {**good, "metadata": {"name": "a", "resourceVersion": "5"}}, "ann", "stale"
    )
    scenario.apply(path, {**good, "metadata": {"name": "a", "uid": "5"}}, "ann", "other uid")
    scenario.apply(
        f"{path}?fieldValidation=Strict", {**good, "spec": {"none": 1}}, "ann", "unknown field"
    )
    scenario.apply(path, {**good, "spec": {"none": 1}}, "ann", "unknown field warned")
    spec: Any
    for spec in ({"n": "x"}, {"set": ["a", "a"]}, {"keyed": [{"v": "x"}]}, {"keyed": [{"k": "x"}, {"k": "x"}]}, {"a": None},
                 {"map": {"a": None}}, {"set": "x"}, {"keyed": {}}, {"deep": []}, {"atomic": [None]}, {"whole": "x"}, None, [], "x"):  # fmt: skip
        scenario.apply(path, {**good, "spec": spec}, "ann", "bad spec")
    scenario.ask(
        "PATCH",
        f"{path}?fieldManager=ann&force=maybe",
        good,
        "bad force",
        media="application/apply-patch+yaml",
    )
    scenario.merge(f"{path}?force=true", {"spec": {}}, "force of a merge patch")
    scenario.post(f"{foos}?force=true&fieldManager=ann", good, "force of a create")
    scenario.apply(f"{path}?dryRun=All", good, "ann", "dry")
    scenario.apply(f"{path}?dryRun=Some", good, "ann", "bad dry run")
    scenario.apply(
        f"{path}/status", scenario.object("a", status={"s": "1"}), "ann", "status of the present"
    )
    scenario.apply(
        scenario.path("foos", "none/status"),
        scenario.object("none", status={"s": "1"}),
        "ann",
        "status of none",
    )
    scenario.apply(
        scenario.path("foos", "none/scale"), scenario.object("none"), "ann", "no such part"
    )
    scenario.apply(foos, good, "ann", "collection")
    return scenario


def _histories() -> Scenario:
    """What managedFields do under ordinary writes."""
    scenario = _with_crd("apply-histories")
    foos, path = scenario.path("foos"), scenario.path("foos", "h")
    scenario.post(
        f"{foos}?fieldManager=maker",
        scenario.object("h", spec={"a": "1", "map": {"i": "1"}}),
        "made",
    )
    scenario.apply(path, scenario.object("h", spec={"a": "1"}), "ann", "shares")
    scenario.apply(path, scenario.object("h", spec={"a": "2"}), "ann", "conflict")
    scenario.apply(
        path, scenario.object("h", spec={"a": "2", "b": "3"}), "ann", "forced", force=True
    )
    scenario.apply(path, scenario.object("h", spec={"b": "3"}), "ann", "gives up")
    scenario.apply(path, scenario.object("h"), "ann", "gives up all")
    scenario.merge(f"{path}?fieldManager=mary", {"spec": {"n": 1}}, "merge")
    scenario.merge(f"{path}?fieldManager=mary", {"spec": {"n": None}}, "removed")
    scenario.json_patch(
        f"{path}?fieldManager=jay", [{"op": "add", "path": "/spec/b", "value": "9"}], "json patch"
    )
    scenario.merge(f"{path}?fieldManager=mary", {"metadata": {"managedFields": []}}, "emptied list")
    scenario.merge(
        f"{path}?fieldManager=mary", {"metadata": {"managedFields": [{}]}}, "emptied entry"
    )
    scenario.merge(f"{path}?fieldManager=mary", {"metadata": {"managedFields": None}}, "nulled")
    for entry in ({"manager": "x"}, {"manager": "x", "operation": "Other"}, {"operation": "Update", "fieldsType": "FieldsV2"},
                  {"manager": "x", "operation": "Update", "apiVersion": f"{scenario.group}/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}},
                  {"manager": "x", "operation": "Update", "apiVersion": f"{scenario.group}/v1", "fieldsType": "FieldsV1", "fieldsV1": {"spec": {}}}):  # fmt: skip
        scenario.merge(path, {"metadata": {"managedFields": [entry]}}, "entry")
    scenario.apply(
        path,
        scenario.object(
            "h",
            metadata={
                "labels": {"a": "b"},
                "annotations": {"c": "d"},
                "finalizers": ["rec.example/f"],
            },
        ),
        "ann",
        "metadata",
    )
    scenario.apply(
        path, scenario.object("h", metadata={"labels": {"a": "b"}}), "bob", "shared label"
    )
    scenario.apply(path, scenario.object("h"), "ann", "label stays")
    scenario.apply(
        f"{path}/status",
        scenario.object("h", status={"s": "1"}, spec={"a": "ignored"}),
        "ann",
        "status",
    )
    scenario.merge(f"{path}/status?fieldManager=stan", {"status": {"t": "1"}}, "status merged")
    scenario.apply(path, scenario.object("h", status={"s": "2"}), "ann", "status by the object")
    scenario.get(path, "at last")
    scenario.delete(path)
    return scenario


_CONTAINER: Object = {"name": "c", "image": "x:1"}


def _deployment(**spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [_CONTAINER], **spec.pop("pod", {})},
    }
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }  # fmt: skip


def _builtin() -> Scenario:
    scenario = Scenario("apply-deployment", managed=True)
    path = scenario.path("deployments", "d", group="apps")
    containers = [
        [{**_CONTAINER, "env": [{"name": "A", "value": "1"}]}], [{**_CONTAINER, "env": [{"name": "B", "value": "1"}]}],
        [{**_CONTAINER, "ports": [{"containerPort": 80}]}], [{**_CONTAINER, "ports": [{"containerPort": 80, "protocol": "UDP"}]}],
        [_CONTAINER, {"name": "side", "image": "y:1"}], [{**_CONTAINER, "image": "x:2"}], [{"name": "c"}], [],
        [{**_CONTAINER, "args": ["a", "b"]}], [{**_CONTAINER, "resources": {"limits": {"cpu": "1"}}}],
        [{**_CONTAINER, "resources": {"limits": {"cpu": "1000m"}}}], [{**_CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        [{**_CONTAINER, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}], [_CONTAINER, _CONTAINER],
    ]  # fmt: skip
    scenario.apply(path, _deployment(replicas=2), "ann", "made")
    for place, listed in enumerate(containers):
        manager = _MANAGERS[place % 3]
        body = _deployment()
        body["spec"]["template"]["spec"]["containers"] = listed
        scenario.apply(path, body, manager, "containers", force=place % 2 == 1)
    scenario.apply(path, _deployment(replicas=3), "bob", "replicas in conflict")
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d"},
        "spec": {"replicas": 5},
    }
    scenario.apply(f"{path}/scale", scale, "auto", "scale in conflict")
    scenario.apply(f"{path}/scale", scale, "auto", "scale", force=True)
    scenario.merge(f"{path}/scale?fieldManager=hand", {"spec": {"replicas": 7}}, "scale merged")
    scenario.apply(path, _deployment(replicas=9), "ann", "replicas again")
    scenario.apply(
        f"{path}/status",
        {**_deployment(), "status": {"replicas": 1, "observedGeneration": 1}},
        "kim",
        "status",
    )
    scenario.get(path, "at last")
    return scenario


def _kinds() -> Scenario:
    scenario = Scenario("apply-kinds", managed=True)
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    bodies: list[tuple[str, str, Object]] = [
        ("configmaps", "", {"kind": "ConfigMap", "data": {"a": "1"}}), ("configmaps", "", {"kind": "ConfigMap", "data": {"b": "1"}, "binaryData": {"c": "YQ=="}}),
        ("secrets", "", {"kind": "Secret", "stringData": {"a": "1"}}), ("secrets", "", {"kind": "Secret", "data": {"a": "MQ=="}, "type": "Opaque"}),
        ("services", "", {"kind": "Service", "spec": {"ports": ports, "selector": {"a": "b"}}}), ("services", "", {"kind": "Service", "spec": {"ports": ports[:1]}}),
        ("services", "", {"kind": "Service", "spec": {"ports": [{"port": 80, "protocol": "UDP"}]}}),
        ("serviceaccounts", "", {"kind": "ServiceAccount", "secrets": [{"name": "x"}]}), ("serviceaccounts", "", {"kind": "ServiceAccount", "secrets": [{"name": "y"}]}),
        ("limitranges", "", {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
        ("roles", "rbac.authorization.k8s.io", {"kind": "Role", "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        ("networkpolicies", "networking.k8s.io", {"kind": "NetworkPolicy", "spec": {"podSelector": {}}}),
        ("ingresses", "networking.k8s.io", {"kind": "Ingress", "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
    ]  # fmt: skip
    for place, (resource, group, body) in enumerate(bodies):
        version = f"{group}/v1" if group else "v1"
        whole = {"apiVersion": version, "metadata": {"name": "k"}, **body}
        path = scenario.path(resource, "k", group=group)
        for manager, force in (
            (_MANAGERS[place % 3], False),
            (_MANAGERS[(place + 1) % 3], place % 2 == 0),
        ):
            scenario.apply(path, whole, manager, resource, force=force)
        scenario.apply(
            path,
            {key: whole[key] for key in ("apiVersion", "kind", "metadata")},
            _MANAGERS[place % 3],
            f"{resource} given up",
        )
    return scenario


def scenarios() -> Iterator[Scenario]:
    for part in range(8):
        yield _random(part)
    yield _refusals()
    yield _histories()
    yield _builtin()
    yield _kinds()
