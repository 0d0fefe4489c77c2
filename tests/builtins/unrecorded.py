"""What was done between recorded requests, off the record, by the id of the later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NAMESPACES = ("rec", "lr", "rq", "inv", "rqi", "pat", "tab")
"""There before the recordings began."""
CUT: Mapping[str, Any] = {
    "cm.create.tooBig": {"metadata": {"name": "big"}, "data": {"a": "x" * 1_048_577}},
    "va.update.status": {"status": {"attachError": {"message": "m" * 262_145}}},
}
"""Bodies that are too long to be recorded."""
_PODS = "/api/v1/namespaces/inv/pods"
_NODE = {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}
_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_DEPLOYMENT = {
    "metadata": {"name": "pu"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "x:1"}]},
        },
    },
}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BARS = {
    "metadata": {"name": "bars.pat.example.com"},
    "spec": {
        "group": "pat.example.com",
        "scope": "Namespaced",
        "names": {"plural": "bars", "kind": "Bar"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CONTAINER = {"name": "a", "image": "x:1"}

UNRECORDED: Mapping[str, Sequence[tuple[str, str, Any]]] = {
    "binding.noPod": [
        ("POST", "/api/v1/nodes", _NODE),
        ("POST", f"{_PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n1"}}),
    ],
    "smp.crd.01.customResource": [
        ("POST", _CRDS, _BARS),
        (
            "POST",
            "/apis/pat.example.com/v1/namespaces/pat/bars",
            {"apiVersion": "pat.example.com/v1", "kind": "Bar", "metadata": {"name": "b"}},
        ),
    ],
    "namespace.04.delete": [
        ("POST", "/api/v1/namespaces/fin/configmaps", {"metadata": {"name": "x"}})
    ],
    "pod.delete.04.create.b": [("POST", "/api/v1/nodes", _NODE)],
    "pod.eviction.05.pdb": [
        ("PATCH", "/api/v1/namespaces/pat/pods/e2/status", {"status": _RUNNING})
    ],
    "put.04.configmap.noResourceVersion": [
        ("POST", "/api/v1/namespaces/pat/configmaps", {"metadata": {"name": "pu"}})
    ],
    "put.18.pdb.noResourceVersion": [
        (
            "POST",
            "/apis/policy/v1/namespaces/pat/poddisruptionbudgets",
            {"metadata": {"name": "pu"}},
        )
    ],
    "put.20.csidriver.noResourceVersion": [
        ("POST", "/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "pu"}, "spec": {}})
    ],
    "put.22.webhook.noResourceVersion": [
        (
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"metadata": {"name": "pu"}},
        )
    ],
    "put.24.deployment.noResourceVersion": [
        ("POST", "/apis/apps/v1/namespaces/pat/deployments", _DEPLOYMENT)
    ],
    "pc.create.secondGlobal": [
        (
            "POST",
            _CLASSES,
            {"metadata": {"name": "pcglob"}, "value": 1, "globalDefault": True},
        ),
    ],
    "rtc.create.noHandler": [("DELETE", f"{_CLASSES}/pcglob", None)],
    "rq.exceeded": [
        (
            "POST",
            "/api/v1/namespaces/rqi/pods",
            {"metadata": {"name": "first"}, "spec": {"containers": [_CONTAINER]}},
        ),
    ],
    "node.update.providerID": [
        (
            "PATCH",
            "/api/v1/nodes/nodex",
            {"spec": {"providerID": "a", "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
        ),
    ],
}
