"""The CRD and objects everything is measured with: 1.4 kB, two versions, a pattern, defaults."""

from __future__ import annotations

from typing import Any

GROUP, PLURAL, KIND = "bench.example.com", "crontabs", "CronTab"
BASE = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
OTHER = f"/apis/{GROUP}/v1beta1/namespaces/default/{PLURAL}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema() -> dict[str, Any]:
    text = {"type": "string"}
    env = {
        "type": "array",
        "maxItems": 100,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": text, "value": text},
        },
    }
    spec = {
        "type": "object",
        "required": ["cronSpec"],
        "properties": {
            "cronSpec": {"type": "string", "pattern": r"^(\S+\s+){4}\S+$"},
            "image": {"type": "string", "maxLength": 200},
            "replicas": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 1},
            "suspend": {"type": "boolean", "default": False},
            "env": env,
            "selector": {"type": "object", "additionalProperties": text},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {"spec": spec, "status": status}}


def crd(plural: str = PLURAL, kind: str = KIND) -> dict[str, Any]:
    def version(name: str, storage: bool) -> dict[str, Any]:
        return {
            "name": name,
            "served": True,
            "storage": storage,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema()},
            "additionalPrinterColumns": [
                {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"}
            ],
        }

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version("v1beta1", False), version("v1", True)],
        },
    }


def thing(version: str = "v1", kind: str = KIND) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {
            "generateName": "ct-",
            "labels": {"app": "bench", "tier": "backend"},
            "annotations": {"example.com/owner": "team-a", "example.com/note": "x" * 120},
        },
        "spec": {
            "cronSpec": "*/5 * * * *",
            "image": "registry.example.com/team/app:v1.2.3",
            "env": [{"name": f"VAR_{i}", "value": f"value-{i}"} for i in range(8)],
            "selector": {"app": "bench", "tier": "backend"},
        },
    }
