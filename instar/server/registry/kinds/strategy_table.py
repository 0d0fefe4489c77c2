"""Table of strategy classes: built-in kind → ``module:Class`` below ``registry/kinds``.

Read by ``builtin_resources.py``. A kind that is not listed has the ``BuiltinStrategy``, which
checks only types.
"""

from __future__ import annotations

from collections.abc import Mapping

RULES: Mapping[str, Mapping[str, str]] = {
    "": {
        "namespaces": "namespaces:NamespaceStrategy",
        "configmaps": "configdata:ConfigMapStrategy",
        "secrets": "configdata:SecretStrategy",
        "services": "services:ServiceStrategy",
        "events": "events:EventStrategy",
        "pods": "workloads.pods:PodStrategy",
        "podtemplates": "workloads.sets:PodTemplateStrategy",
        "replicationcontrollers": "workloads.sets:ReplicationControllerStrategy",
        "persistentvolumes": "storage:PersistentVolumeStrategy",
        "persistentvolumeclaims": "storage:PersistentVolumeClaimStrategy",
        "endpoints": "networking:EndpointsStrategy",
        "nodes": "cluster:NodeStrategy",
        "limitranges": "limits:LimitRangeStrategy",
        "resourcequotas": "limits:ResourceQuotaStrategy",
    },
    "apps": {
        "deployments": "workloads.sets:DeploymentStrategy",
        "statefulsets": "workloads.sets:StatefulSetStrategy",
        "daemonsets": "workloads.sets:DaemonSetStrategy",
        "replicasets": "workloads.sets:ReplicaSetStrategy",
        "controllerrevisions": "workloads.sets:ControllerRevisionStrategy",
    },
    "batch": {
        "jobs": "workloads.jobs:JobStrategy",
        "cronjobs": "workloads.jobs:CronJobStrategy",
    },
    "autoscaling": {
        "horizontalpodautoscalers": "autoscaling:AutoscalerStrategy",
    },
    "networking.k8s.io": {
        "ingresses": "networking:IngressStrategy",
        "ingressclasses": "networking:IngressClassStrategy",
        "networkpolicies": "networking:NetworkPolicyStrategy",
        "ipaddresses": "ranges:IpAddressStrategy",
        "servicecidrs": "ranges:ServiceCidrStrategy",
    },
    "discovery.k8s.io": {
        "endpointslices": "networking:EndpointSliceStrategy",
    },
    "policy": {
        "poddisruptionbudgets": "autoscaling:PodDisruptionBudgetStrategy",
    },
    "rbac.authorization.k8s.io": {
        "roles": "rbac:RoleStrategy",
        "clusterroles": "rbac:RoleStrategy",
        "rolebindings": "rbac:BindingStrategy",
        "clusterrolebindings": "rbac:BindingStrategy",
    },
    "storage.k8s.io": {
        "storageclasses": "storage:StorageClassStrategy",
        "volumeattributesclasses": "storage:VolumeAttributesClassStrategy",
        "csidrivers": "storage:CsiDriverStrategy",
        "csinodes": "storage:CsiNodeStrategy",
        "csistoragecapacities": "storage:GuardedStrategy",
        "volumeattachments": "storage:VolumeAttachmentStrategy",
    },
    "coordination.k8s.io": {
        "leases": "cluster:LeaseStrategy",
        "leasecandidates": "cluster:LeaseCandidateStrategy",
    },
    "node.k8s.io": {
        "runtimeclasses": "cluster:RuntimeClassStrategy",
    },
    "admissionregistration.k8s.io": {
        "mutatingadmissionpolicies": "admissionregistration:PolicyStrategy",
        "mutatingadmissionpolicybindings": "admissionregistration:PolicyBindingStrategy",
        "mutatingwebhookconfigurations": "admissionregistration:WebhookConfigurationStrategy",
        "validatingadmissionpolicies": "admissionregistration:PolicyStrategy",
        "validatingadmissionpolicybindings": "admissionregistration:PolicyBindingStrategy",
        "validatingwebhookconfigurations": "admissionregistration:WebhookConfigurationStrategy",
    },
    "apiregistration.k8s.io": {
        "apiservices": "cluster:ApiServiceStrategy",
    },
    "certificates.k8s.io": {
        "certificatesigningrequests": "signing:SigningRequestStrategy",
    },
    "scheduling.k8s.io": {
        "priorityclasses": "cluster:PriorityClassStrategy",
    },
    "flowcontrol.apiserver.k8s.io": {
        "flowschemas": "flowcontrol:FlowSchemaStrategy",
        "prioritylevelconfigurations": "flowcontrol:PriorityLevelStrategy",
    },
    "internal.apiserver.k8s.io": {
        "storageversions": "cluster:StorageVersionStrategy",
    },
    "resource.k8s.io": {
        "resourceclaims": "devices:ResourceClaimStrategy",
        "resourceclaimtemplates": "devices:ResourceClaimTemplateStrategy",
        "resourceslices": "devices:ResourceSliceStrategy",
        "deviceclasses": "devices:DeviceClassStrategy",
        "devicetaintrules": "devices:DeviceTaintRuleStrategy",
        "resourcepoolstatusrequests": "devices:ResourcePoolStatusRequestStrategy",
    },
}
"""By group and plural: ``module:Class``, imported when the kind is first used."""
