"""An operator as its author would write it: each Site gets a Deployment, a Service and a ConfigMap
of its own. Nothing in here knows that the server is not a cluster.

kopf run --standalone --namespace=NAME tests/e2e/kopf_children.py
"""

from __future__ import annotations

import importlib
from typing import Any

import kopf

config: Any = importlib.import_module("kubernetes.config")
dynamic: Any = importlib.import_module("kubernetes.dynamic")

GROUP, VERSION, PLURAL = "sites.example.com", "v1", "sites"


def children(name: str, text: str, replicas: int) -> list[dict[str, Any]]:
    labels = {"site": name}
    container = {"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"index.html": text},
    }
    return [deployment, service, page]


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL, field="spec")
def changed(name: str, namespace: Any, spec: Any, patch: Any, **_: Any) -> None:
    wanted = children(name, spec["text"], spec.get("replicas", 1))
    kopf.adopt(wanted)
    client = dynamic.DynamicClient(config.new_client_from_config())
    for obj in wanted:
        api = client.resources.get(api_version=obj["apiVersion"], kind=obj["kind"])
        api.server_side_apply(
            body=obj, namespace=namespace, field_manager="site", force_conflicts=True
        )
    patch.status["made"] = len(wanted)
    patch.status["text"] = spec["text"]
