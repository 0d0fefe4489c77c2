"""JSON patches, merge patches and strategic merge patches, of custom resources and of built-in
kinds: what they do, and what refusals say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import JSON_PATCH, Scenario

_LOOSE: Object = {
    "type": "object",
    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
_START: Object = {
    "a": "text",
    "n": 1,
    "l": [1, 2, 3],
    "m": {"x": {"y": "z"}, "a/b": 1, "c~d": 2},
    "e": [],
    "f": {},
    "t": True,
    "z": 1.5,
}


def _op(op: Any, path: Any = None, **more: Any) -> Object:
    out = {"op": op, **more}
    return out if path is None else {**out, "path": path}


_JSON: list[Any] = [
    [_op("add", "/spec/new", value=1)], [_op("add", "/spec/a", value=2)], [_op("add", "/spec/l/0", value=0)], [_op("add", "/spec/l/3", value=4)],
    [_op("add", "/spec/l/4", value=4)], [_op("add", "/spec/l/-", value=4)], [_op("add", "/spec/l/-1", value=4)], [_op("add", "/spec/l/01", value=4)],
    [_op("add", "/spec/l/x", value=4)], [_op("add", "/spec/none/x", value=4)], [_op("add", "/spec/a/x", value=4)], [_op("add", "/spec/m/a~1b", value=4)],
    [_op("add", "/spec/m/c~0d", value=4)], [_op("add", "/spec/m/~2", value=4)], [_op("add", "", value={})], [_op("add", "/", value=1)],
    [_op("add", "spec/a", value=1)], [_op("add", "/spec/x")], [_op("add", "/spec/x", value=None)], [_op("add", value=1)],
    [_op("remove", "/spec/a")], [_op("remove", "/spec/none")], [_op("remove", "/spec/l/0")], [_op("remove", "/spec/l/9")], [_op("remove", "/spec/l/-")],
    [_op("remove", "/spec/l/-1")], [_op("remove", "/spec")], [_op("remove", "/metadata")], [_op("remove", "/kind")], [_op("remove", "")], [_op("remove")],
    [_op("replace", "/spec/a", value="b")], [_op("replace", "/spec/none", value="b")], [_op("replace", "/spec/l/1", value="b")], [_op("replace", "/spec/l/7", value="b")],
    [_op("replace", "/spec", value={})], [_op("replace", "/spec", value=5)], [_op("replace", "/metadata/name", value="b")], [_op("replace", "/kind", value="Bar")],
    [_op("replace", "/metadata/labels", value={"a": 1})], [_op("replace", "", value={"a": 1})], [_op("replace", "/spec/a")],
    [_op("move", "/spec/b", **{"from": "/spec/a"})], [_op("move", "/spec/b", **{"from": "/spec/none"})], [_op("move", "/spec/l/0", **{"from": "/spec/l/2"})],
    [_op("move", "/spec/m/x/y/z", **{"from": "/spec/m/x"})], [_op("move", "/spec/b")], [_op("copy", "/spec/b", **{"from": "/spec/m"})],
    [_op("copy", "/spec/l/-", **{"from": "/spec/l/0"})], [_op("copy", "/spec/b", **{"from": "/none"})], [_op("copy", "/spec/b")],
    [_op("test", "/spec/a", value="text")], [_op("test", "/spec/a", value="other")], [_op("test", "/spec/none", value=None)], [_op("test", "/spec/none", value=1)],
    [_op("test", "/spec/n", value=1.0)], [_op("test", "/spec/l", value=[1, 2, 3])], [_op("test", "/spec/m", value={"a/b": 1, "c~d": 2, "x": {"y": "z"}})],
    [_op("test", "/spec/a")], [_op("test", "/spec/a", value="text"), _op("remove", "/spec/a")], [_op("remove", "/spec/a"), _op("test", "/spec/a", value="text")],
    [_op("other", "/spec/a")], [_op(None, "/spec/a")], [_op(5, "/spec/a")], [{"path": "/spec/a"}], [{}], [None], ["x"], [[]], [], {}, None, "x", 5,
    [_op("add", 5, value=1)], [_op("add", "/spec/x", value=1, extra=1)], [_op("add", "/metadata/labels", value={"a": "b"})],
    [_op("add", "/metadata/labels/x", value="b")], [_op("add", "/metadata/finalizers", value=["bad"])], [_op("add", "/status", value={"a": 1})],
    [_op("add", "/metadata/resourceVersion", value="1")], [_op("add", "/metadata/uid", value="x")], [_op("add", "/metadata/generation", value=9)],
    [_op("add", "/extra", value=1)], [_op("replace", "/apiVersion", value="v1")], [_op("replace", "/metadata/namespace", value="other")],
]  # fmt: skip
_MERGES: list[Any] = [
    {"spec": {"a": "b"}}, {"spec": {"a": None}}, {"spec": None}, {"spec": {"m": {"x": None}}}, {"spec": {"m": {"x": {"y": None}}}}, {"spec": {"l": [9]}},
    {"spec": {"l": [None]}}, {"spec": {"l": None}}, {"spec": {"new": {"a": None, "b": 1}}}, {"spec": {"new": [{"a": None}]}}, {"spec": 5}, {"spec": []},
    {}, [], None, "x", 5, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {"a": 1}}}, {"metadata": {"labels": []}},
    {"metadata": {"name": "b"}}, {"metadata": {"namespace": "other"}}, {"metadata": {"uid": "x"}}, {"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "x"}},
    {"metadata": {"resourceVersion": ""}}, {"metadata": {"generation": 9}}, {"metadata": {"creationTimestamp": None}}, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
    {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}, {"metadata": None}, {"metadata": 5}, {"kind": "Bar"}, {"kind": None}, {"apiVersion": "v1"}, {"apiVersion": None},
    {"status": {"a": 1}}, {"extra": 1}, {"metadata": {"finalizers": ["rec.example/f"]}}, {"metadata": {"finalizers": None}}, {"metadata": {"annotations": {"a": "b"}}},
    {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}}, {"metadata": {"ownerReferences": [{}]}}, {"metadata": {"unknown": 1}},
]  # fmt: skip


def _custom() -> Iterator[Scenario]:
    for name, patches in (("patch-json", _JSON), ("patch-merge", _MERGES)):
        scenario = Scenario(name)
        scenario.make_crd(scenario.crd(_LOOSE))
        scenario.post(
            scenario.path("foos"),
            scenario.object("a", spec=_START, metadata={"labels": {"a": "1"}}),
        )
        path = scenario.path("foos", "a")
        for patch in patches:
            # Each from the same start: what it makes is not kept.
            for where in (f"{path}?dryRun=All", f"{path}?dryRun=All&fieldValidation=Strict"):
                if name == "patch-json":
                    scenario.json_patch(where, patch)
                elif "Strict" not in where or "metadata" in str(patch) or "extra" in str(patch):
                    scenario.merge(where, patch)
        yield scenario


def _texts() -> Scenario:
    """Bodies that are no patches, media types that are none."""
    scenario = Scenario("patch-texts")
    scenario.make_crd(scenario.crd(_LOOSE))
    scenario.post(scenario.path("foos"), scenario.object("a", spec=_START))
    path = scenario.path("foos", "a")
    for text in (
        "",
        "{",
        "[",
        "[{]",
        '{"a":',
        "null",
        '"x"',
        "5",
        '{"spec":{"a":1,"a":2}}',
        '[{"op":"add","path":"/spec/a","path":"/spec/b","value":1}]',
        "\x00",
        "é",
    ):
        for media in (
            JSON_PATCH,
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ):
            scenario.ask("PATCH", path, text, media=media)
    for media in (
        "application/json",
        "text/plain",
        "application/yaml",
        "",
        "application/json-patch+json; charset=utf-8",
        "application/apply-patch+cbor",
        "x/y",
    ):
        scenario.ask("PATCH", path, "{}", f"media {media}", media=media)
    scenario.merge(scenario.path("foos", "none"), {"spec": {}}, "none")
    scenario.json_patch(scenario.path("foos", "none"), [], "none")
    scenario.merge(scenario.path("foos"), {"spec": {}}, "collection")
    scenario.merge(f"{path}/status", {"spec": {}}, "no such part")
    scenario.merge(f"{path}?resourceVersion=1", {"spec": {}}, "parameter")
    many = [_op("add", "/spec/x", value=number) for number in range(10001)]
    scenario.json_patch(path, many[:100], "hundred operations")
    scenario.json_patch(path, many, "too many operations", only_failure=True)
    return scenario


def _random() -> Iterator[Scenario]:
    dice = random.Random(77)
    paths = (
        "/spec/a",
        "/spec/l",
        "/spec/l/0",
        "/spec/l/-",
        "/spec/m/x",
        "/spec/m/x/y",
        "/spec/e/0",
        "/spec/f/q",
        "/spec/none",
        "/spec/none/x",
        "/metadata/labels/z",
        "/spec/l/2",
    )
    values: tuple[Any, ...] = ("v", 1, None, [1], {"k": "v"}, False)
    scenario = Scenario("patch-random")
    scenario.make_crd(scenario.crd(_LOOSE))
    for number in range(6):
        name = f"r{number}"
        scenario.post(scenario.path("foos"), scenario.object(name, spec=_START))
        for _ in range(18):
            operations = []
            for _ in range(dice.randrange(1, 4)):
                kind = dice.choice(("add", "remove", "replace", "move", "copy", "test"))
                more: Object = {"from": dice.choice(paths)} if kind in ("move", "copy") else {}
                if kind in ("add", "replace", "test"):
                    more["value"] = dice.choice(values)
                operations.append(_op(kind, dice.choice(paths), **more))
            scenario.json_patch(scenario.path("foos", name), operations)
    yield scenario


_POD: Object = {
    "containers": [
        {"name": "a", "image": "x:1", "env": [{"name": "E1", "value": "1"}, {"name": "E2", "value": "2"}], "args": ["p", "q"],
         "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"name": "b", "image": "y:1"}],
    "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "k", "operator": "Exists"}], "imagePullSecrets": [{"name": "s1"}],
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["h"]}], "nodeSelector": {"n": "1"},
}  # fmt: skip
_STRATEGIC: list[Any] = [
    {"containers": [{"name": "a", "image": "x:2"}]}, {"containers": [{"name": "c", "image": "z:1"}]}, {"containers": [{"name": "b", "$patch": "delete"}]},
    {"containers": [{"image": "x:2"}]}, {"containers": [{"$patch": "replace"}, {"name": "only", "image": "o:1"}]}, {"containers": None}, {"containers": []},
    {"containers": [{"name": "a", "env": [{"name": "E1", "value": "9"}, {"name": "E3", "value": "3"}]}]}, {"containers": [{"name": "a", "env": [{"name": "E1", "$patch": "delete"}]}]},
    {"containers": [{"name": "a", "env": None}]}, {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]}, {"containers": [{"name": "a", "ports": [{"containerPort": 81}]}]},
    {"containers": [{"name": "a", "args": ["z"]}]}, {"containers": [{"name": "a", "$retainKeys": ["name", "image"]}]}, {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/w", "name": "v"}]}]},
    {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "x:3"}]}, {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
    {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]},
    {"volumes": [{"name": "v", "$patch": "delete"}]}, {"tolerations": [{"key": "z", "operator": "Exists"}]}, {"tolerations": None}, {"imagePullSecrets": [{"name": "s2"}]},
    {"imagePullSecrets": [{"name": "s1", "$patch": "delete"}]}, {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["i"]}]}, {"hostAliases": [{"ip": "2.2.2.2", "hostnames": ["j"]}]},
    {"nodeSelector": {"n": None, "m": "2"}}, {"nodeSelector": {"$patch": "replace", "q": "1"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {"$patch": "odd"}},
    {"$patch": "replace", "containers": [{"name": "r", "image": "r:1"}]}, {"restartPolicy": "Never"}, {"restartPolicy": 5}, {"unknown": 1}, {"containers": "x"}, {"containers": [5]},
    {"containers": {"name": "a"}}, {"$deleteFromPrimitiveList/finalizers": ["x"]}, {"$retainKeys": ["containers"], "containers": [{"name": "a"}]}, {"terminationGracePeriodSeconds": 5},
    {"securityContext": {"runAsUser": 5}}, {"affinity": {}}, {"dnsConfig": {"nameservers": ["1.1.1.1"]}}, {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
]  # fmt: skip


def _strategic() -> Iterator[Scenario]:
    scenario = Scenario("patch-strategic")
    deployment = {
        "metadata": {"name": "d", "labels": {"a": "1"}, "finalizers": ["rec.example/a", "rec.example/b"]},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": _POD}},
    }  # fmt: skip
    scenario.post(scenario.path("deployments", group="apps"), deployment, "made")
    path = f"{scenario.path('deployments', 'd', group='apps')}?dryRun=All"
    for change in _STRATEGIC:
        for strictness in ("", "&fieldValidation=Strict"):
            if not strictness or "unknown" in str(change) or "$" in str(change):
                scenario.strategic(f"{path}{strictness}", {"spec": {"template": {"spec": change}}})
    others: list[Any] = [
        {"metadata": {"finalizers": ["rec.example/c"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["rec.example/a"]}},
        {"metadata": {"$setElementOrder/finalizers": ["rec.example/b", "rec.example/a"]}}, {"metadata": {"finalizers": None}}, {"metadata": {"labels": {"$patch": "replace", "z": "1"}}},
        {"metadata": None}, {"spec": None}, {"spec": {"replicas": None}}, {"spec": {"replicas": "3"}}, {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, {"spec": {"selector": {"matchLabels": {"b": "c"}}}}, {"$patch": "delete"}, {"$patch": "replace"}, [], None, "x", {},
        {"metadata": {"managedFields": []}}, {"kind": "Other"}, {"metadata": {"name": "x"}}, {"status": {"replicas": 5}}, {"spec": {"template": {"metadata": {"labels": None}}}},
    ]  # fmt: skip
    for change in others:
        scenario.strategic(path, change)
        scenario.merge(path, change)
    yield scenario
    service = Scenario("patch-service")
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "targetPort": "x"}]
    service.post(
        service.path("services", group=""),
        {"metadata": {"name": "s"}, "spec": {"ports": ports, "selector": {"a": "b"}}},
        "made",
    )
    for change in ({"ports": [{"port": 80, "targetPort": 8080}]}, {"ports": [{"port": 82, "name": "c"}]}, {"ports": [{"port": 81, "$patch": "delete"}]}, {"ports": [{"name": "a", "targetPort": 1}]},
                   {"selector": {"a": None, "c": "d"}}, {"type": "NodePort"}, {"type": "ExternalName", "externalName": "x.y"}, {"clusterIP": "None"}, {"sessionAffinity": "ClientIP"}, {"ports": []},
                   {"externalIPs": ["1.2.3.4"]}, {"ipFamilyPolicy": "PreferDualStack"}, {"loadBalancerIP": "1.2.3.4"}, {"publishNotReadyAddresses": True}):  # fmt: skip
        path = f"{service.path('services', 's', group='')}?dryRun=All"
        service.strategic(path, {"spec": change})
        service.merge(path, {"spec": change})
    yield service


def scenarios() -> Iterator[Scenario]:
    yield from _custom()
    yield _texts()
    yield from _random()
    yield from _strategic()
