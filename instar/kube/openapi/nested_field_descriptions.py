"""Descriptions of the fields below the specs of the kinds that people use most, written for this
project.

Called by ``builtin.py``, beside ``field_descriptions.py``, whose form the table has. Volumes are in
``volume_field_descriptions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.kube.openapi.field_descriptions import FIELD_DESCRIPTIONS
from instar.kube.openapi.spec_field_descriptions import SPEC_FIELDS
from instar.kube.openapi.status_field_descriptions import STATUS_FIELDS

_NAME = "Name of the referenced object."
_OPTIONAL = "Whether it may be missing."
_CONTAINER = "Name of the container."
_TARGET = "Value that the autoscaler aims at."
_METRIC = "The metric, by name and labels."
_PORT = "Number of the port, or its name."
_OPERATOR = "How the key is compared with the values."
_PROFILE = {
    "localhostProfile": "Name of a profile on the node, for the type Localhost.",
    "type": "RuntimeDefault, Localhost or Unconfined.",
}
_REFERENCE = {
    "apiGroup": "Group of the referenced object; empty for the core group.",
    "kind": "Kind of the referenced object.",
    "name": _NAME,
}

NESTED_FIELDS: Mapping[str, Mapping[str, str]] = {
    # workloads
    "RollingUpdateDaemonSet": {
        "maxSurge": "Nodes on which the old and the new pod may run together.",
        "maxUnavailable": "Nodes whose pod may be unavailable: a number or a percentage.",
    },
    "RollingUpdateStatefulSetStrategy": {
        "maxUnavailable": "Pods that may be unavailable: a number or a percentage.",
        "partition": "Pods with this number and above are updated.",
    },
    "StatefulSetOrdinals": {"start": "Number of the first pod."},
    "StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain or Delete claims when the set is deleted.",
        "whenScaled": "Retain or Delete the claims of removed pods when the set gets smaller.",
    },
    "PodFailurePolicy": {"rules": "Rules; the first that matches decides."},
    "PodFailurePolicyRule": {
        "action": "FailJob, FailIndex, Ignore or Count.",
        "onExitCodes": "Exit codes that match.",
        "onPodConditions": "Conditions of the pod that match.",
    },
    "PodFailurePolicyOnExitCodesRequirement": {
        "containerName": "The container; absent for any.",
        "operator": "In or NotIn.",
        "values": "Exit codes.",
    },
    "PodFailurePolicyOnPodConditionsPattern": {
        "status": "True, False or Unknown.",
        "type": "Type of the condition.",
    },
    "SuccessPolicy": {"rules": "Rules; the job succeeds when one is met."},
    "SuccessPolicyRule": {
        "succeededCount": "Number of indexes that have to succeed.",
        "succeededIndexes": "Indexes that have to succeed, as numbers and ranges.",
    },
    # autoscaling
    "CrossVersionObjectReference": {
        "apiVersion": "apiVersion of the referenced object.",
        "kind": "Kind of the referenced object.",
        "name": _NAME,
    },
    "HorizontalPodAutoscalerBehavior": {
        "scaleDown": "Limits for fewer replicas.",
        "scaleUp": "Limits for more replicas.",
    },
    "HPAScalingRules": {
        "policies": "How much may change in which time.",
        "selectPolicy": "Max, Min or Disabled: which policy counts.",
        "stabilizationWindowSeconds": "Seconds of past advice that are considered.",
        "tolerance": "Share by which a metric may differ from its target without a change.",
    },
    "HPAScalingPolicy": {
        "periodSeconds": "Length of the time in which the change is counted.",
        "type": "Pods or Percent.",
        "value": "Largest change.",
    },
    "MetricSpec": STATUS_FIELDS["MetricStatus"],
    "MetricIdentifier": {
        "name": "Name of the metric.",
        "selector": "Labels of the metric.",
    },
    "MetricTarget": {
        "averageUtilization": "Percentage of what the pods request, averaged.",
        "averageValue": "Quantity, averaged over the pods.",
        "type": "Utilization, Value or AverageValue.",
        "value": "Quantity.",
    },
    "ContainerResourceMetricSource": {
        "container": _CONTAINER,
        "name": "Name of the resource.",
        "target": _TARGET,
    },
    "ExternalMetricSource": {"metric": _METRIC, "target": _TARGET},
    "ObjectMetricSource": {
        "describedObject": "The object that the metric is of.",
        "metric": _METRIC,
        "target": _TARGET,
    },
    "PodsMetricSource": {"metric": _METRIC, "target": _TARGET},
    "ResourceMetricSource": {"name": "Name of the resource.", "target": _TARGET},
    # containers
    "EphemeralContainer": {
        **FIELD_DESCRIPTIONS["Container"],
        **SPEC_FIELDS["Container"],
        "targetContainerName": "Container whose process namespace it uses.",
    },
    "AppArmorProfile": _PROFILE,
    "SeccompProfile": _PROFILE,
    "Capabilities": {"add": "Capabilities to add.", "drop": "Capabilities to drop."},
    "SELinuxOptions": {
        "level": "Level of the label.",
        "role": "Role of the label.",
        "type": "Type of the label.",
        "user": "User of the label.",
    },
    "WindowsSecurityContextOptions": {
        "gmsaCredentialSpec": "The GMSA credential spec itself.",
        "gmsaCredentialSpecName": "Name of the GMSA credential spec.",
        "hostProcess": "Whether the containers are host processes.",
        "runAsUserName": "Name of the user of the first process.",
    },
    "ConfigMapEnvSource": {"name": _NAME, "optional": _OPTIONAL},
    "SecretEnvSource": {"name": _NAME, "optional": _OPTIONAL},
    "ConfigMapKeySelector": {"key": "The key.", "name": _NAME, "optional": _OPTIONAL},
    "SecretKeySelector": {"key": "The key.", "name": _NAME, "optional": _OPTIONAL},
    "FileKeySelector": {
        "key": "Name of the variable in the file.",
        "optional": _OPTIONAL,
        "path": "Path of the file in the volume.",
        "volumeName": "Name of the volume with the file.",
    },
    "EnvFromSource": {
        "configMapRef": "ConfigMap whose keys become variables.",
        "prefix": "Text before the name of each variable.",
        "secretRef": "Secret whose keys become variables.",
    },
    "EnvVarSource": {
        "configMapKeyRef": "A key of a ConfigMap.",
        "fieldRef": "A field of the pod.",
        "fileKeyRef": "A variable in a file of a volume.",
        "resourceFieldRef": "A request or limit of a container.",
        "secretKeyRef": "A key of a secret.",
    },
    "ObjectFieldSelector": {
        "apiVersion": "Version in which the path is written; v1 by default.",
        "fieldPath": "Path of the field.",
    },
    "ResourceFieldSelector": {
        "containerName": _CONTAINER,
        "divisor": "Unit of the value; 1 by default.",
        "resource": "The resource, such as limits.cpu.",
    },
    "ContainerResizePolicy": {
        "resourceName": "cpu or memory.",
        "restartPolicy": "NotRequired or RestartContainer.",
    },
    "ContainerRestartRule": {
        "action": "Restart, or RestartAllContainers.",
        "exitCodes": "Exit codes that match.",
    },
    "ContainerRestartRuleOnExitCodes": {"operator": "In or NotIn.", "values": "Exit codes."},
    "ResourceClaim": {
        "name": "Name of an entry in the pod's resourceClaims.",
        "request": "One request of the claim; absent for all.",
    },
    "Lifecycle": {
        "postStart": "Runs right after the container is started.",
        "preStop": "Runs before the container is stopped.",
        "stopSignal": "Signal that stops the container.",
    },
    "LifecycleHandler": {
        "exec": "Runs a command in the container.",
        "httpGet": "Sends an HTTP request.",
        "sleep": "Waits.",
        "tcpSocket": "Has no effect; kept for old objects.",
    },
    "Probe": {
        "terminationGracePeriodSeconds": "Seconds to stop the container after the probe failed.",
    },
    "ExecAction": {"command": "Program and arguments; no shell."},
    "GRPCAction": {
        "port": "Number of the port.",
        "service": "Service named in the health check.",
    },
    "HTTPGetAction": {
        "host": "Host to connect to; by default the pod's address.",
        "httpHeaders": "Headers of the request.",
        "path": "Path of the request.",
        "port": _PORT,
        "scheme": "HTTP or HTTPS.",
    },
    "HTTPHeader": {"name": "Name of the header.", "value": "Value of the header."},
    "SleepAction": {"seconds": "Seconds to wait."},
    "TCPSocketAction": {
        "host": "Host to connect to; by default the pod's address.",
        "port": _PORT,
    },
    # pods
    "HostAlias": {"hostnames": "Host names of the address.", "ip": "The address."},
    "PodDNSConfig": {
        "nameservers": "Addresses of name servers.",
        "options": "Options of the resolver.",
        "searches": "Domains to search in.",
    },
    "PodDNSConfigOption": {"name": "Name of the option.", "value": "Value of the option."},
    "PodOS": {"name": "linux or windows."},
    "PodReadinessGate": {"conditionType": "Type of a condition of the pod."},
    "PodResourceClaim": {
        "name": "Name by which containers use it.",
        "resourceClaimName": "Name of a ResourceClaim.",
        "resourceClaimTemplateName": "Name of a template; each pod gets a claim of its own.",
    },
    "PodSchedulingGate": {"name": "Name of the gate."},
    "PodSchedulingGroup": {"podGroupName": "Name of the PodGroup."},
    "Sysctl": {"name": "Name of the parameter.", "value": "Value of the parameter."},
    "NodeSelector": {"nodeSelectorTerms": "Terms; one has to match."},
    "NodeSelectorTerm": {
        "matchExpressions": "Conditions on labels of the node.",
        "matchFields": "Conditions on fields of the node.",
    },
    "NodeSelectorRequirement": {
        "key": "Label or field.",
        "operator": _OPERATOR,
        "values": "Values to compare with.",
    },
    "PreferredSchedulingTerm": {
        "preference": "Nodes that are preferred.",
        "weight": "Weight, from 1 to 100.",
    },
    "WeightedPodAffinityTerm": {
        "podAffinityTerm": "Pods that count.",
        "weight": "Weight, from 1 to 100.",
    },
    "PodAffinityTerm": {
        "labelSelector": "Pods that count.",
        "matchLabelKeys": "Labels of this pod whose values the others must have.",
        "mismatchLabelKeys": "Labels of this pod whose values the others must not have.",
        "namespaceSelector": "Namespaces of those pods, by label.",
        "namespaces": "Namespaces of those pods, by name; by default that of this pod.",
        "topologyKey": "Label whose value says which nodes are the same place.",
    },
    # services, references, roles
    "SessionAffinityConfig": {"clientIP": "Settings of the affinity by client address."},
    "ClientIPConfig": {"timeoutSeconds": "Seconds after which a client may change its pod."},
    "ObjectReference": {
        "apiVersion": "apiVersion of the referenced object.",
        "fieldPath": "A part of the object, such as one container.",
        "namespace": "Namespace of the referenced object.",
        "resourceVersion": "resourceVersion of the referenced object.",
        "uid": "uid of the referenced object.",
    },
    "SecretReference": {"name": "Name of the secret.", "namespace": "Namespace of the secret."},
    "TypedLocalObjectReference": _REFERENCE,
    "TypedObjectReference": {
        **_REFERENCE,
        "namespace": "Namespace of the referenced object.",
    },
    "TopologySelectorTerm": {"matchLabelExpressions": "Conditions on labels of the node."},
    "TopologySelectorLabelRequirement": {
        "key": "The label.",
        "values": "Values, one of which the label must have.",
    },
    "AggregationRule": {"clusterRoleSelectors": "Labels of the roles whose rules are collected."},
    "RoleBinding": {
        "roleRef": "The role; it cannot be changed.",
        "subjects": "Users, groups and ServiceAccounts that get the role.",
    },
}
"""By type and field."""
