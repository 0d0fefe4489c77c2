"""The CRD and the objects that all benchmarks use: 1.4 kB, two versions, a pattern, defaults."""

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


def pod() -> dict[str, Any]:
    """Return a pod as a server stores it: with defaults, managedFields and one container with a
    probe.
    """
    container: dict[str, Any] = {".": {}, "f:image": {}}
    owned = {"f:spec": {"f:containers": {'k:{"name":"app"}': container}}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web-5d4f8c7b9-abcde",
            "namespace": "default",
            "uid": "6f2c4a54-5b0e-4a53-8b8a-1f7d3f4d2f10",
            "resourceVersion": "1234",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"},
            "managedFields": [
                {
                    "manager": "bench",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": owned,
                }
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "example.com/web:1",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    "livenessProbe": {
                        "httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"},
                        "timeoutSeconds": 1,
                        "periodSeconds": 10,
                        "successThreshold": 1,
                        "failureThreshold": 3,
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
