"""Warnings about built-in kinds: created, changed in the part that is warned about, changed
elsewhere, and refused, when nothing is warned about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instar.base.json_values import Object
from tests.recordings.questions._warned_kinds import (
    CLUSTER_WIDE,
    NAMESPACED,
    OLD_LABEL,
)
from tests.recordings.scenarios import Scenario


def _container(**fields: Any) -> Object:
    return {"name": "c", "image": "x:1", **fields}


def _ports(*ports: Object) -> Object:
    return {"containers": [_container(ports=list(ports))]}


def _volumes(*volumes: Object) -> Object:
    return {"volumes": [{"name": f"v{at}", **each} for at, each in enumerate(volumes)]}


def _items(*paths: str) -> list[Object]:
    return [{"key": f"k{at}", "path": path} for at, path in enumerate(paths)]


def _port(number: int = 80, **fields: Any) -> Object:
    return {"containerPort": number, **fields}


_EXPRESSION = {"key": OLD_LABEL, "operator": "In", "values": ["a b", "linux"]}
_TERM: Object = {"topologyKey": "z"}
_SPECS: Mapping[str, Object] = {
    "node selector": {"nodeSelector": {OLD_LABEL: "linux", "a": "b"}},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{**_EXPRESSION, "values": ["linux"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [_EXPRESSION]}}
                ],
            }
        }
    },
    "pod affinity": {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": _TERM}
                ]
            },
        }
    },
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": OLD_LABEL, "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
    "old volumes": _volumes(
        {"photonPersistentDisk": {"pdID": "a"}},
        {"gitRepo": {"repository": "a"}},
        {"scaleIO": {"gateway": "a", "system": "b", "secretRef": {"name": "s"}, "volumeName": "v"}},
        {"flocker": {"datasetName": "a"}},
        {"storageos": {"volumeName": "a"}},
        {"quobyte": {"registry": "a:1", "volume": "v"}},
        {"glusterfs": {"endpoints": "a", "path": "b"}},
        {"cephfs": {"monitors": ["a"]}},
        {"rbd": {"monitors": ["a"], "image": "i"}},
    ),
    "volume claim": _volumes(
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {
                            "requests": {"storage": "500m"},
                            "limits": {"storage": "1500m"},
                        },
                    }
                }
            }
        }
    ),
    "overlapping files": _volumes(
        {"configMap": {"name": "m", "items": _items("a", "a/b", "c", "c")}},
        {"secret": {"secretName": "s", "items": _items("x/", "x")}},
        {
            "downwardAPI": {
                "items": [
                    {"path": path, "fieldRef": {"fieldPath": "metadata.name"}}
                    for path in ("a", "a/c")
                ]
            }
        },
        {
            "projected": {
                "sources": [
                    {"configMap": {"name": "m", "items": _items("a")}},
                    {"secret": {"name": "s", "items": _items("a/b")}},
                    {"serviceAccountToken": {"path": "a/b"}},
                    {},
                ]
            }
        },
    ),
    "host aliases": {
        "hostAliases": [
            {"ip": "1.1.1.1", "hostnames": ["a"]},
            {"ip": "1.1.1.1", "hostnames": ["b"]},
            {"ip": "2001:DB8::1", "hostnames": ["c"]},
        ]
    },
    "pull secrets": {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}]},
    "fractions": {
        "containers": [
            _container(
                resources={
                    "limits": {"memory": "1500m", "ephemeral-storage": "1.5", "cpu": "1500m"},
                    "requests": {"memory": "500m", "ephemeral-storage": "100m"},
                }
            )
        ],
        "initContainers": [_container(name="i", resources={"limits": {"memory": "1m"}})],
    },
    "variables": {
        "containers": [
            _container(
                env=[
                    {"name": "A", "value": "1"},
                    {"name": "A", "value": "$(A)2"},
                    {"name": "A", "value": "$(A)"},
                    {"name": "A", "value": "3"},
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ]
            )
        ]
    },
    "same ports": _ports(_port(), _port()),
    "overlapping ports": _ports(_port(), _port(hostPort=8080)),
    "ambiguous ports": _ports(_port(hostPort=8080), _port(hostPort=8080, hostIP="1.2.3.4")),
    "address without host port": _ports(_port(name="web", hostIP="1.2.3.4")),
    "port names": {
        "containers": [
            _container(ports=[_port(80, name="web")]),
            _container(name="d", ports=[_port(81, name="web")]),
        ]
    },
    "negative grace": {"terminationGracePeriodSeconds": -1},
    "name servers": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["2001:DB8::1", "1.1.1.1"]}},
    "leading zeros": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["010.1.1.1"]}},
    "refused": {"nodeSelector": {OLD_LABEL: "linux"}, "restartPolicy": "Sometimes"},
}
_ANNOTATIONS: Mapping[str, Object] = {
    "critical": {"scheduler.alpha.kubernetes.io/critical-pod": ""},
    "sysctls": {
        "security.alpha.kubernetes.io/sysctls": "",
        "security.alpha.kubernetes.io/unsafe-sysctls": "",
    },
    "seccomp": {
        "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "runtime/default",
    },
    "apparmor": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
}


def _pod(spec: Object, **metadata: Any) -> Object:
    whole = {"containers": [_container()], **spec}
    return {"metadata": metadata, "spec": whole}


def _template(spec: Object, **metadata: Any) -> Object:
    return _pod(spec, labels={"app": "a"}, **metadata)


def _pods() -> Iterator[Scenario]:
    pods = Scenario("warnings-pods")
    for label, spec in _SPECS.items():
        path = f"{pods.path('pods', group='')}?dryRun=All"
        pods.post(path, _pod(spec, name="a"), label, only_failure=True)
    for label, noted in _ANNOTATIONS.items():
        path = f"{pods.path('pods', group='')}?dryRun=All"
        pods.post(path, _pod({}, name="a", annotations=noted), label, only_failure=True)
    pods.post(f"{pods.path('pods', group='')}?dryRun=All", _pod({}, name="a.b"), only_failure=True)
    pods.post(pods.path("pods", group=""), _pod(_SPECS["node selector"], name="p"), "made")
    pods.merge(pods.path("pods", "p", group=""), {"metadata": {"labels": {"a": "b"}}}, "labelled")
    yield pods
    templates = Scenario("warnings-templates")
    for label, spec in _SPECS.items():
        body = {"metadata": {"name": "a"}, "template": _template(spec)}
        path = f"{templates.path('podtemplates', group='')}?dryRun=All"
        templates.post(path, body, label, only_failure=True)
    for label, noted in _ANNOTATIONS.items():
        body = {"metadata": {"name": "a"}, "template": _template({}, annotations=noted)}
        path = f"{templates.path('podtemplates', group='')}?dryRun=All"
        templates.post(path, body, label, only_failure=True)
    yield templates


def _workloads() -> Iterator[Scenario]:
    selector = {"matchLabels": {"app": "a"}}
    warned = _template(_SPECS["node selector"])
    job = {"template": _pod({**_SPECS["node selector"], "restartPolicy": "Never"})}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "500m"}}}
    specs: dict[tuple[str, str], Object] = {
        ("apps", "deployments"): {"selector": selector, "template": warned},
        ("apps", "replicasets"): {"selector": selector, "template": warned},
        ("apps", "daemonsets"): {"selector": selector, "template": warned},
        ("apps", "statefulsets"): {
            "selector": selector,
            "serviceName": "s",
            "template": warned,
            "revisionHistoryLimit": -1,
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": claim}],
        },
        ("", "replicationcontrollers"): {"selector": {"app": "a"}, "template": warned},
        ("batch", "jobs"): {
            **job,
            "completionMode": "Indexed",
            "completions": 100_001,
            "parallelism": 10_001,
        },
        ("batch", "cronjobs"): {"schedule": "0 0 * * *", "jobTemplate": {"spec": job}},
    }
    scenario = Scenario("warnings-workloads")
    for (group, plural), spec in specs.items():
        path = scenario.path(plural, group=group)
        scenario.post(
            f"{path}?dryRun=All", {"metadata": {"name": "a.b"}, "spec": spec}, only_failure=True
        )
        scenario.post(path, {"metadata": {"name": "a"}, "spec": spec}, plural, only_failure=True)
        whole = f"{path}/a"
        scenario.merge(whole, {"metadata": {"labels": {"x": "y"}}}, "labelled", only_failure=True)
        scenario.merge(whole, {"spec": {"minReadySeconds": 1}}, "changed", only_failure=True)
        image = {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}
        scenario.merge(whole, image, "template changed", only_failure=True)
        scenario.merge(whole, {"spec": {"suspend": True}}, "suspended", only_failure=True)
    cron = scenario.path("cronjobs", "a", group="batch")
    scenario.merge(cron, {"spec": {"schedule": "TZ=UTC 0 0 * * *"}}, "zone", only_failure=True)
    yield scenario


def _kinds() -> Iterator[Scenario]:
    for name, cases in (("warnings-kinds", NAMESPACED), ("warnings-cluster-kinds", CLUSTER_WIDE)):
        scenario = Scenario(name)
        place = scenario.path if cases is NAMESPACED else scenario.cluster_path
        for (group, plural), bodies in cases.items():
            path = place(plural, group=group)
            for label, body in bodies.items():
                made = f"{name}-{label}".lower().replace(" ", "-").replace(",", "")
                metadata = {**body.get("metadata", {}), "name": made}
                whole = {**body, "metadata": metadata}
                scenario.post(path, whole, label, only_failure=True)
                change = {"metadata": {"labels": {"x": "y"}}}
                scenario.merge(f"{path}/{made}", change, "labelled", only_failure=True)
                scenario.delete(f"{path}/{made}", only_code=True)
        yield scenario


def scenarios() -> Iterator[Scenario]:
    yield from _pods()
    yield from _workloads()
    yield from _kinds()
