"""Built-in kinds: a small object of each kind is created, read, replaced and patched; then each
of its fields in turn is removed or given a value that does not fit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import TABLE, Scenario

_POD: Object = {"containers": [{"name": "c", "image": "x:1"}]}
_TEMPLATE: Object = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_SELECTOR: Object = {"matchLabels": {"app": "a"}}
_RULE: Object = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_PEER: Object = {"podSelector": {"matchLabels": {"a": "b"}}}
_CLAIM: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_METRIC: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
_REF: Object = {"apiVersion": "v1", "kind": "Pod", "name": "p"}

NAMESPACED: list[tuple[str, str, Object]] = [
    ("", "configmaps", {"data": {"a": "b"}, "binaryData": {"c": "YQ=="}, "immutable": False}),
    ("", "secrets", {"type": "Opaque", "stringData": {"a": "b"}, "data": {"c": "YQ=="}}),
    ("", "services", {"spec": {"selector": {"a": "b"}, "ports": [{"name": "p", "port": 80, "targetPort": "web", "protocol": "TCP"}], "sessionAffinity": "None", "type": "ClusterIP"}}),
    ("", "endpoints", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80, "name": "p"}]}]}),
    ("", "serviceaccounts", {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "s"}]}),
    ("", "limitranges", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "default": {"cpu": "1500m"}}]}}),
    ("", "resourcequotas", {"spec": {"hard": {"count/widgets.example": "5", "requests.cpu": "1"}, "scopes": ["BestEffort"]}}),
    ("", "persistentvolumeclaims", {"spec": {**_CLAIM, "storageClassName": "fast", "volumeMode": "Filesystem"}}),
    ("", "podtemplates", {"template": _TEMPLATE}),
    ("", "replicationcontrollers", {"spec": {"replicas": 2, "selector": {"app": "a"}, "template": _TEMPLATE}}),
    ("", "events", {"involvedObject": {**_REF, "namespace": "{ns}"}, "reason": "R", "message": "m", "type": "Normal", "count": 1}),
    ("", "pods", {"spec": {"containers": [{"name": "c", "image": "x:1", "command": ["a"], "env": [{"name": "E", "value": "v"}], "ports": [{"containerPort": 80, "protocol": "TCP"}],
                  "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"cpu": "200m"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                  "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5}, "securityContext": {"runAsNonRoot": True}}],
                  "initContainers": [{"name": "i", "image": "x"}], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}], "restartPolicy": "Always", "terminationGracePeriodSeconds": 5,
                  "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "dnsPolicy": "Default", "hostname": "h", "priority": 0, "automountServiceAccountToken": False}}),
    ("apps", "deployments", {"spec": {"replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "minReadySeconds": 1, "revisionHistoryLimit": 3, "progressDeadlineSeconds": 60, "paused": False}}),
    ("apps", "replicasets", {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE}}),
    ("apps", "statefulsets", {"spec": {"serviceName": "s", "replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE, "podManagementPolicy": "Parallel", "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}], "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}),
    ("apps", "daemonsets", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE, "updateStrategy": {"type": "OnDelete"}, "minReadySeconds": 3}}),
    ("apps", "controllerrevisions", {"revision": 1, "data": {"a": 1}}),
    ("batch", "jobs", {"spec": {"completions": 2, "parallelism": 1, "backoffLimit": 3, "completionMode": "Indexed", "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5, "suspend": False, "template": {"spec": {**_POD, "restartPolicy": "Never"}}}}),
    ("batch", "cronjobs", {"spec": {"schedule": "*/5 * * * *", "timeZone": "Etc/UTC", "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 5, "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "OnFailure"}}}}}}),
    ("autoscaling@v2", "horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 3, "metrics": [_METRIC], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}}}),
    ("policy", "poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": _SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
    ("networking.k8s.io", "ingresses", {"spec": {"ingressClassName": "nginx", "tls": [{"hosts": ["a.b"], "secretName": "s"}], "rules": [{"host": "a.b", "http": {"paths": [{"path": "/x", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
    ("networking.k8s.io", "networkpolicies", {"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [_PEER], "ports": [{"port": 80, "protocol": "TCP", "endPort": 90}]}], "egress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.1.0/24"]}}]}]}}),
    ("rbac.authorization.k8s.io", "roles", {"rules": [_RULE]}),
    ("rbac.authorization.k8s.io", "rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
    ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5, "acquireTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 1}}),
    ("discovery.k8s.io", "endpointslices", {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"], "conditions": {"ready": True}, "hostname": "h"}], "ports": [{"name": "p", "port": 80, "protocol": "TCP"}]}),
    ("events.k8s.io", "events", {"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "rec.example/c", "reportingInstance": "i", "action": "a", "reason": "R", "type": "Normal", "note": "n", "regarding": {**_REF, "namespace": "{ns}"}}),
    ("resource.k8s.io", "resourceclaims", {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}]}}}),
]  # fmt: skip
CLUSTERED: list[tuple[str, str, Object]] = [
    ("", "namespaces", {"metadata": {"labels": {"a": "b"}}}),
    ("", "nodes", {"spec": {"podCIDR": "10.2.0.0/24", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "unschedulable": True, "providerID": "p"}}),
    ("", "persistentvolumes", {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "fast", "hostPath": {"path": "/x", "type": ""}}}),
    ("storage.k8s.io", "storageclasses", {"provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "parameters": {"a": "b"}, "allowVolumeExpansion": True, "mountOptions": ["ro"]}),
    ("storage.k8s.io", "csidrivers", {"spec": {"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent"], "fsGroupPolicy": "File", "tokenRequests": [{"audience": "a"}]}}),
    ("storage.k8s.io", "volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
    ("storage.k8s.io", "csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["k"], "allocatable": {"count": 3}}]}}),
    ("scheduling.k8s.io", "priorityclasses", {"value": 100, "globalDefault": False, "preemptionPolicy": "Never", "description": "d"}),
    ("node.k8s.io", "runtimeclasses", {"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": {"nodeSelector": {"a": "b"}}}),
    ("rbac.authorization.k8s.io", "clusterroles", {"rules": [_RULE, {"nonResourceURLs": ["/x"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io", "clusterrolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}]}),
    ("networking.k8s.io", "ingressclasses", {"spec": {"controller": "rec.example/c", "parameters": {"apiGroup": "k", "kind": "K", "name": "n", "scope": "Cluster"}}}),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}}),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", {"spec": {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 5, "distinguisherMethod": {"type": "ByUser"}, "rules": [{"subjects": [{"kind": "User", "user": {"name": "u"}}], "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}]}]}}),
    ("resource.k8s.io", "deviceclasses", {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}]}}),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", {"webhooks": [{"name": "a.rec.example", "clientConfig": {"url": "https://h.example/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "timeoutSeconds": 5,
        "rules": [{"operations": ["CREATE"], "apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["x"], "scope": "*"}], "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Exact", "matchConditions": [{"name": "m", "expression": "true"}]}]}),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", {"webhooks": [{"name": "a.rec.example", "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/x", "port": 8443}}, "sideEffects": "NoneOnDryRun", "admissionReviewVersions": ["v1", "v1beta1"], "reinvocationPolicy": "IfNeeded",
        "rules": [{"operations": ["UPDATE", "DELETE"], "apiGroups": ["none.example"], "apiVersions": ["*"], "resources": ["x/*"]}]}]}),
    ("certificates.k8s.io", "certificatesigningrequests", {"spec": {"request": "bm90IGEgcmVxdWVzdA==", "signerName": "rec.example/s", "usages": ["digital signature"], "expirationSeconds": 3600}}),
]  # fmt: skip
_WRONG: dict[type, list[Any]] = {
    str: ["", "Not Valid!", 5, None], int: [-1, "x", 1.5, 10**12], bool: ["yes", None], dict: [{}, [], "x"], list: [[], None, "x", [None]], float: ["x"],
}  # fmt: skip
_ABSENT = object()


def _paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place of an object, outermost first."""
    if way:
        yield way, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, (*way, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _paths(each, (*way, place))


def _changed(value: Any, way: tuple[Any, ...], to: Any) -> Any:
    out = copy.deepcopy(value)
    at = out
    for part in way[:-1]:
        at = at[part]
    if to is _ABSENT:
        del at[way[-1]]
    else:
        at[way[-1]] = to
    return out


def filled(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: filled(each, namespace) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, namespace) for each in value]
    return value.replace("{ns}", namespace) if isinstance(value, str) else value


def _kind(group: str, resource: str, fields: Object, *, namespaced: bool) -> Scenario:
    group, _, version = group.partition("@")
    version = version or "v1"
    scenario = Scenario(f"kind-{group.partition('.')[0] or 'core'}-{resource}"[:63])
    path_of = scenario.path if namespaced else scenario.cluster_path
    collection = path_of(resource, group=group, version=version)
    name = f"{scenario.name}-o"[-60:].lstrip("-")
    whole = filled({"metadata": {"name": name}, **fields}, scenario.name)
    whole["metadata"].setdefault("name", name)
    path = f"{collection}/{name}"
    scenario.post(collection, whole, "made")
    scenario.get(path, "read")
    scenario.get(path, "shown", accept=TABLE)
    bare = {"metadata": {"name": name}}
    scenario.post(f"{collection}?dryRun=All", {"metadata": {"name": f"{name}-b"}}, "bare")
    scenario.put(f"{path}?dryRun=All", bare, "emptied")
    scenario.merge(f"{path}?dryRun=All", {"metadata": {"labels": {"x": "y"}}}, "labelled")
    dry = f"{collection}?dryRun=All"
    fresh = {**whole, "metadata": {**whole["metadata"], "name": f"{name}-f"}}
    own = {key: each for key, each in whole.items() if key != "metadata"}
    for place, (way, value) in enumerate(_paths(own)):
        scenario.post(
            dry,
            _changed(fresh, way, _ABSENT),
            f"without {way[-1]}",
            only_failure=True,
            unordered=True,
        )
        wrong = _WRONG[type(value)]
        chosen = wrong[place % len(wrong)]
        scenario.post(
            dry, _changed(fresh, way, chosen), f"wrong {way[-1]}", only_failure=True, unordered=True
        )
        second = wrong[(place + 1) % len(wrong)]
        scenario.put(
            f"{path}?dryRun=All",
            _changed(whole, way, second),
            f"changed {way[-1]}",
            only_failure=True,
            unordered=True,
        )
    scenario.delete(path, {"gracePeriodSeconds": 0} if resource == "pods" else None, "deleted")
    return scenario


def scenarios() -> Iterator[Scenario]:
    for group, resource, fields in NAMESPACED:
        yield _kind(group, resource, fields, namespaced=True)
    for group, resource, fields in CLUSTERED:
        yield _kind(group, resource, fields, namespaced=False)
