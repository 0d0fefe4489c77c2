"""Renders ``instar upgrade`` as a Job with its permissions, for Helm, Argo CD and Flux.

Called by ``instar upgrade --manifests``.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.crd import GROUP

_HOOKS: dict[str, dict[str, str]] = {
    "none": {},
    "helm": {
        "helm.sh/hook": "pre-install,pre-upgrade",
        "helm.sh/hook-delete-policy": "before-hook-creation",
    },
    "argocd": {
        "argocd.argoproj.io/hook": "PreSync",
        "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
    },
}
_CRDS = "customresourcedefinitions"


def smallest_rules(crds: Sequence[Object], *, owner_references: bool = False) -> list[Object]:
    """Return the minimal RBAC rules for ``instar upgrade`` of these CRDs.

    ``owner_references``: also what changes them, in objects of any kind, when a version goes.
    """
    names = sorted(crd["metadata"]["name"] for crd in crds)
    rules = [
        _rule(GROUP, [_CRDS], ["get", "create", "patch", "update"], names),
        _rule(GROUP, [f"{_CRDS}/status"], ["get", "patch", "update"], names),
    ]
    kinds: dict[str, list[str]] = {}
    for crd in crds:
        kinds.setdefault(crd["spec"]["group"], []).append(crd["spec"]["names"]["plural"])
    verbs = ["get", "list", "patch", "update"]
    rules += [_rule(group, sorted(plurals), verbs) for group, plurals in sorted(kinds.items())]
    if owner_references:
        rules.append(_rule("*", ["*"], ["get", "list", "patch"]))
    return rules


def _rule(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> Object:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": verbs}


@dataclass(frozen=True, slots=True)
class UpgradeJob:
    """What ``instar upgrade --manifests`` writes manifests for."""

    name: str
    namespace: str
    image: str
    rules: list[Object]
    config_map: str = ""
    hook: str = "none"

    def render(self) -> str:
        return "---\n".join(yaml.safe_dump(item, sort_keys=False) for item in self.documents())

    def documents(self) -> list[Object]:
        role = f"{self.namespace}-{self.name}"
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        return [
            self._document("v1", "ServiceAccount", self.name, -3, namespaced=True),
            self._document(
                "rbac.authorization.k8s.io/v1", "ClusterRole", role, -3, rules=self.rules
            ),
            self._document(
                "rbac.authorization.k8s.io/v1",
                "ClusterRoleBinding",
                role,
                -2,
                roleRef={
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": role,
                },
                subjects=[subject],
            ),
            self._document("batch/v1", "Job", self.name, -1, namespaced=True, spec=self._job()),
        ]

    def _job(self) -> Object:
        container: Object = {
            "name": "upgrade",
            "image": self.image,
            "args": ["upgrade", "/crds"],
            "resources": {
                "requests": {"cpu": "50m", "memory": "64Mi"},
                "limits": {"memory": "256Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        pod: Object = {
            "serviceAccountName": self.name,
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        }
        if self.config_map:
            container["volumeMounts"] = [{"name": "crds", "mountPath": "/crds", "readOnly": True}]
            pod["volumes"] = [{"name": "crds", "configMap": {"name": self.config_map}}]
        return {"backoffLimit": 2, "template": {"spec": pod}}

    def _document(
        self,
        version: str,
        kind: str,
        name: str,
        weight: int,
        *,
        namespaced: bool = False,
        **rest: object,
    ) -> Object:
        metadata: Object = {"name": name}
        if namespaced:
            metadata["namespace"] = self.namespace
        annotations = dict(_HOOKS[self.hook])
        if self.hook == "helm":
            annotations["helm.sh/hook-weight"] = str(weight)
        if self.hook == "argocd":
            annotations["argocd.argoproj.io/sync-wave"] = str(weight)
        if annotations:
            metadata["annotations"] = annotations
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
