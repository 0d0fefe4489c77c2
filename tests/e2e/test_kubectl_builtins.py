"""A real kubectl over the built-in kinds: what it makes, changes, explains and describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl

MADE = {
    "configmap": ("create", "configmap", "one", "--from-literal=a=b"),
    "cronjob": ("create", "cronjob", "one", "--image=x:1", "--schedule=*/5 * * * *"),
    "deployment": ("create", "deployment", "one", "--image=nginx:1", "--replicas=2"),
    "ingress": ("create", "ingress", "one", "--rule=a.example.com/b=one:80"),
    "job": ("create", "job", "one", "--image=x:1"),
    "pod": ("run", "one", "--image=x:1"),
    "poddisruptionbudget": (
        *("create", "poddisruptionbudget", "one"),
        *("--selector=app=one", "--min-available=1"),
    ),
    "resourcequota": ("create", "quota", "one", "--hard=services=100"),
    "role": ("create", "role", "one", "--verb=get", "--resource=pods"),
    "rolebinding": ("create", "rolebinding", "one", "--role=one", "--user=jane"),
    "secret": ("create", "secret", "generic", "one", "--from-literal=a=b"),
    "service": ("create", "service", "clusterip", "one", "--tcp=80:8080"),
    "serviceaccount": ("create", "serviceaccount", "one"),
}
"""How kubectl makes one of each kind."""
APPLIED = {
    "statefulset": {
        "apiVersion": "apps/v1",
        "spec": {
            "serviceName": "one",
            "selector": {"matchLabels": {"app": "s"}},
            "template": {
                "metadata": {"labels": {"app": "s"}},
                "spec": {"containers": [{"name": "a", "image": "x:1"}]},
            },
        },
    },
    "persistentvolumeclaim": {
        "apiVersion": "v1",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    "networkpolicy": {"apiVersion": "networking.k8s.io/v1", "spec": {"podSelector": {}}},
    "limitrange": {
        "apiVersion": "v1",
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    },
}
"""Kinds that kubectl has no words for."""
_KINDS = {
    "statefulset": "StatefulSet",
    "persistentvolumeclaim": "PersistentVolumeClaim",
    "networkpolicy": "NetworkPolicy",
    "limitrange": "LimitRange",
}


def test_every_kind_is_made_shown_labelled_described_and_deleted(kubectl: Kubectl) -> None:
    for arguments in MADE.values():
        kubectl(*arguments)
    for kind, rest in APPLIED.items():
        body = {**rest, "kind": _KINDS[kind], "metadata": {"name": "one"}}
        kubectl("apply", "-f", "-", given=body)

    for kind in [*MADE, *APPLIED]:
        assert "one" in kubectl("get", kind, "one", "-o", "wide"), kind
        kubectl("label", kind, "one", "a=b")
        kubectl("annotate", kind, "one", "c=d")
        described = kubectl("describe", kind, "one")
        assert "Name:" in described, kind
        assert "one" in described, kind
    labelled = kubectl("get", ",".join([*MADE, *APPLIED]), "-l", "a=b", "-o", "name").split()
    assert len(labelled) == len(MADE) + len(APPLIED)

    kubectl("delete", ",".join([*MADE, *APPLIED]), "-l", "a=b", "--wait=false")
    left = kubectl("get", ",".join(MADE), "-l", "a=b", "-o", "name").split()
    assert left == []


def test_a_deployment_is_set_scaled_exposed_and_rolled(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("set", "env", "deployment/web", "A=b")
    kubectl("set", "resources", "deployment/web", "--limits=cpu=1")
    kubectl("set", "serviceaccount", "deployment/web", "default")
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080")
    kubectl("autoscale", "deployment", "web", "--min=2", "--max=5", "--cpu-percent=50")
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "pause", "deployment/web")
    kubectl("rollout", "resume", "deployment/web")

    deployment = kubectl.json("get", "deployment", "web")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nginx:2"
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["resources"] == {"limits": {"cpu": "1"}}
    assert deployment["spec"]["replicas"] == 3
    assert kubectl.json("get", "service", "web")["spec"]["ports"][0]["targetPort"] == 8080
    scaler = kubectl.json("get", "hpa", "web")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 5)
    assert "Waiting for deployment spec update" in kubectl.fails(
        "rollout", "status", "deployment/web", "--timeout=1s"
    )
    assert "No rollout history found" in kubectl("rollout", "history", "deployment/web")


def test_commands_that_need_a_kubelet_are_refused_with_the_reason(kubectl: Kubectl) -> None:
    kubectl("run", "p", "--image=x:1")

    assert kubectl("logs", "p") == ""
    assert "does not have a host assigned" in kubectl.fails("exec", "p", "--", "ls")
    assert "Metrics API not available" in kubectl.fails("top", "pods")
    assert "pod is not running" in kubectl.fails("port-forward", "pod/p", "0:80")


def test_a_node_is_cordoned_and_drained(kubectl: Kubectl) -> None:
    node = f"node-{kubectl.namespace}"
    kubectl(
        *("create", "-f", "-"),
        given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}},
    )
    for name in ("guarded", "free"):
        spec = {
            "nodeName": node,
            "containers": [{"name": "a", "image": "x:1"}],
            "terminationGracePeriodSeconds": 0,
        }
        metadata = {"name": name, "labels": {"app": name}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        kubectl("create", "-f", "-", given=body)
    kubectl("create", "pdb", "guarded", "--selector=app=guarded", "--min-available=1")
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    seen = {"observedGeneration": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    seen |= {"currentHealthy": 1, "desiredHealthy": 1}
    for group, plural, status in (
        ("api/v1", "pods", ready),
        ("apis/policy/v1", "poddisruptionbudgets", seen),
    ):
        path = f"/{group}/namespaces/{kubectl.namespace}/{plural}/guarded/status"
        merge = "application/merge-patch+json"
        kubectl.server.request("PATCH", path, {"status": status}, content_type=merge)

    kubectl("cordon", node)
    refused = kubectl.fails("drain", node, "--force", "--timeout=2s")

    assert "SchedulingDisabled" in kubectl("get", "node", node)
    assert "violate the pod's disruption budget" in refused
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/guarded"]
    kubectl("delete", "pdb", "guarded")
    kubectl("drain", node, "--force", "--timeout=10s")
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("uncordon", node)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("pod.spec", "containers\t<[]Container> -required-"),
        ("pod.spec.containers.resources", "limits\t<map[string]Quantity>"),
        ("deployment.spec.strategy", "rollingUpdate\t<RollingUpdateDeployment>"),
        ("service.spec.ports", "targetPort\t<IntOrString>"),
        ("networkpolicy.spec.ingress", "from\t<[]NetworkPolicyPeer>"),
        ("clusterrole.rules", "verbs\t<[]string> -required-"),
        ("horizontalpodautoscaler.spec", "maxReplicas\t<integer> -required-"),
        ("customresourcedefinition.spec", "versions\t<[]CustomResourceDefinitionVersion>"),
    ],
)
def test_explain_shows_the_types_of_built_in_kinds(kubectl: Kubectl, path: str, told: str) -> None:
    assert told in kubectl("explain", path)


def test_unknown_fields_are_refused_before_anything_is_written(kubectl: Kubectl) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "x:1", "imgae": "y"}]},
    }

    refused = kubectl.fails("apply", "--validate=strict", "-f", "-", given=body)

    assert 'unknown field "spec.containers[0].imgae"' in refused
    assert kubectl("get", "pods", "-o", "name") == ""


def test_pruning_deletes_unapplied_objects_of_the_default_kinds(
    kubectl: Kubectl, files: Path
) -> None:
    labels = {"labels": {"app": "pruned"}}
    first = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **labels}}
        for kind, name in (("ConfigMap", "stays"), ("ConfigMap", "goes"), ("Secret", "goes"))
    ]
    kubectl("apply", "--prune", "-l", "app=pruned", "-f", "-", given=first)

    told = kubectl("apply", "--prune", "-l", "app=pruned", "-f", "-", given=first[:1])

    assert "configmap/goes pruned" in told
    assert "secret/goes pruned" in told
    left = kubectl("get", "configmap,secret", "-l", "app=pruned", "-o", "name").split()
    assert left == ["configmap/stays"]
