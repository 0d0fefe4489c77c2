"""Policies over HTTP: short ways to make one, bind it, and see what a write is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from instar.base.json_values import Object
from tests.rest.support import SUBRESOURCES, make_crd, version
from tests.support import crds
from tests.support.server import Answer, LiveServer

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
WIDGET_SPEC: Object = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "n": {"type": "integer"},
        "d": {"type": "string", "default": "given"},
        "replicas": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
STATUS = {"type": "object", "properties": {"s": {"type": "string"}}}


def widget_crd(group: str) -> Object:
    """Namespaced, v1 (stored, with status and scale) and v2 with the same fields."""
    schema = crds.fields(spec=WIDGET_SPEC, status=STATUS)
    return make_crd(
        group,
        [
            version("v1", schema, storage=True, subresources=SUBRESOURCES),
            version("v2", schema),
        ],
        plural="widgets",
        kind="Widget",
    )


@dataclass
class Cluster:
    """A server with widgets in a group of their own, and policies about them."""

    server: LiveServer
    group: str
    made: list[str] = field(default_factory=list)

    def path(self, name: str = "", *, version: str = "v1", namespace: str = "default") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/{namespace}/widgets"
        return f"{base}/{name}" if name else base

    def widget(self, name: str, *, version: str = "v1", **spec: Any) -> Object:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }

    def create(self, name: str, *, query: str = "", version: str = "v1", **spec: Any) -> Answer:
        return self.server.request(
            "POST",
            self.path(version=version) + query,
            self.widget(name, version=version, **spec),
        )

    def rules(self, *operations: str, **more: Any) -> Object:
        rule = {
            "apiGroups": [self.group],
            "apiVersions": ["v1"],
            "operations": list(operations or ("CREATE", "UPDATE")),
            "resources": ["widgets"],
        }
        return {"resourceRules": [{**rule, **more}]}

    def policy(self, *expressions: str, name: str = "pol.ref.io", **spec: Any) -> Object:
        body: Object = {
            "matchConstraints": self.rules(),
            "validations": [{"expression": each} for each in expressions],
            **spec,
        }
        return self.make("validatingadmissionpolicies", "ValidatingAdmissionPolicy", name, body)

    def bind(
        self,
        *actions: str,
        name: str = "bind.ref.io",
        policy: str = "pol.ref.io",
        **spec: Any,
    ) -> Object:
        body: Object = {
            "policyName": policy,
            "validationActions": list(actions or ("Deny",)),
            **spec,
        }
        kind = "ValidatingAdmissionPolicyBinding"
        return self.make("validatingadmissionpolicybindings", kind, name, body)

    def mutation(self, *mutations: Object, name: str = "pol.ref.io", **spec: Any) -> Object:
        body: Object = {
            "matchConstraints": self.rules(),
            "reinvocationPolicy": "Never",
            "mutations": list(mutations),
            **spec,
        }
        return self.make("mutatingadmissionpolicies", "MutatingAdmissionPolicy", name, body)

    def bind_mutation(
        self, *, name: str = "bind.ref.io", policy: str = "pol.ref.io", **spec: Any
    ) -> Object:
        kind = "MutatingAdmissionPolicyBinding"
        body = {"policyName": policy, **spec}
        return self.make("mutatingadmissionpolicybindings", kind, name, body)

    def make(self, plural: str, kind: str, name: str, spec: Object) -> Object:
        obj = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        answer = self.server.request("POST", f"{REGISTRATION}/{plural}", obj)
        assert answer.status == 201, answer.text
        self.made.append(f"{REGISTRATION}/{plural}/{name}")
        made: Object = answer.json
        return made

    def config_map(self, name: str, data: Object, **metadata: Any) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, **metadata},
            "data": data,
        }
        path = "/api/v1/namespaces/default/configmaps"
        answer = self.server.request("POST", path, body)
        assert answer.status == 201, answer.text
        self.made.append(f"{path}/{name}")

    def clear(self) -> None:
        """Policies go first: the last binding lets everything else go."""
        for path in reversed(self.made):
            self.server.request("DELETE", path)
        self.made.clear()
        self.server.request("DELETE", self.path())


def apply(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
