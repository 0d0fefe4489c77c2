"""Descriptions of further fields in the specs of the kinds that people use most, written for this
project.

Called by ``builtin.py``, beside ``field_descriptions.py``, whose form the table has.
"""

from __future__ import annotations

from collections.abc import Mapping

_OLD_VOLUME = "A volume of a driver that was removed from Kubernetes, or moved to CSI."
_OLD_DRIVERS = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder flexVolume flocker gcePersistentDisk "
    "gitRepo glusterfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos "
    "vsphereVolume"
)
_OLD_VOLUMES = dict.fromkeys(_OLD_DRIVERS.split(), _OLD_VOLUME)
_SE_LINUX = "SELinux labels of the processes."
_SECCOMP = "Which system calls are allowed."
_APP_ARMOR = "AppArmor profile of the processes."
_WINDOWS = "Options for Windows."
_USER = "User id of the processes."
_GROUP = "Group id of the processes."
_NOT_ROOT = "Whether a container that would run as root is not started."
_REQUIRED = "Rules that a node has to fulfil when the pod is scheduled."
_PREFERRED = "Rules by which nodes are preferred, with weights."
_PODS = "Placement near other pods."
_UPDATE = {
    "rollingUpdate": "Settings of a rolling update.",
    "type": "RollingUpdate, or OnDelete: pods change when they are deleted.",
}

SPEC_FIELDS: Mapping[str, Mapping[str, str]] = {
    "PodSpec": {
        "enableServiceLinks": "Whether containers get variables for the Services around them.",
        "hostIPC": "Use the IPC namespace of the node.",
        "hostUsers": "Use the user namespace of the node; true by default.",
        "hostnameOverride": "Host name that replaces every other one.",
        "os": "Operating system of the containers.",
        "overhead": "Resources of the sandbox itself, set by the RuntimeClass.",
        "preemptionPolicy": "Whether the pod may displace pods of lower priority.",
        "priority": "Priority, set from the priority class.",
        "readinessGates": "Conditions that have to be true for the pod to be ready.",
        "resourceClaims": "Devices that containers of the pod can use.",
        "resources": "CPU and memory of all containers together.",
        "schedulingGroup": "The group with which the pod is scheduled.",
        "serviceAccount": "Old name of serviceAccountName.",
        "setHostnameAsFQDN": "Whether the host name is the full domain name.",
        "shareProcessNamespace": "Whether containers see each other's processes.",
    },
    "PodSecurityContext": {
        "appArmorProfile": _APP_ARMOR,
        "fsGroup": "Group that owns the files of volumes.",
        "fsGroupChangePolicy": "When files get that group: Always or OnRootMismatch.",
        "runAsGroup": _GROUP,
        "runAsNonRoot": _NOT_ROOT,
        "runAsUser": _USER,
        "seLinuxChangePolicy": "How volumes get SELinux labels.",
        "seLinuxOptions": _SE_LINUX,
        "seccompProfile": _SECCOMP,
        "supplementalGroups": "Further groups of the processes.",
        "supplementalGroupsPolicy": "Whether groups of the image count, too.",
        "sysctls": "Kernel parameters of the pod.",
        "windowsOptions": _WINDOWS,
    },
    "SecurityContext": {
        "allowPrivilegeEscalation": "Whether a process may gain more rights than its parent.",
        "appArmorProfile": _APP_ARMOR,
        "capabilities": "Linux capabilities to add and to drop.",
        "privileged": "Whether the container has the rights of root on the node.",
        "procMount": "How /proc is mounted.",
        "readOnlyRootFilesystem": "Whether the container's own files cannot be written.",
        "runAsGroup": _GROUP,
        "runAsNonRoot": _NOT_ROOT,
        "runAsUser": _USER,
        "seLinuxOptions": _SE_LINUX,
        "seccompProfile": _SECCOMP,
        "windowsOptions": _WINDOWS,
    },
    "Container": {
        "resizePolicy": "Whether a change of resources restarts the container.",
        "restartPolicy": "Always makes an init container a sidecar.",
        "restartPolicyRules": "Exit codes that decide about a restart.",
        "stdin": "Whether the container keeps its standard input open.",
        "stdinOnce": "Whether it closes after the first client leaves.",
        "terminationMessagePath": "File with the last words of the container.",
        "terminationMessagePolicy": "File, or the end of the log if the file is empty.",
        "tty": "Whether the container has a terminal.",
        "volumeDevices": "Block devices of the container.",
    },
    "ContainerPort": {"hostIP": "Address of the node at which hostPort listens."},
    "Affinity": {
        "nodeAffinity": "Rules about nodes.",
        "podAffinity": "Pods to be near to.",
        "podAntiAffinity": "Pods to be away from.",
    },
    "NodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": _PREFERRED,
        "requiredDuringSchedulingIgnoredDuringExecution": _REQUIRED,
    },
    "PodAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": _PODS,
        "requiredDuringSchedulingIgnoredDuringExecution": _PODS,
    },
    "PodAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": _PODS,
        "requiredDuringSchedulingIgnoredDuringExecution": _PODS,
    },
    "TopologySpreadConstraint": {
        "labelSelector": "The pods that are counted.",
        "matchLabelKeys": "Labels whose values are taken from the pod itself.",
        "maxSkew": "How much the counts of two domains may differ.",
        "minDomains": "The fewest domains that count.",
        "nodeAffinityPolicy": "Whether node affinity limits the domains.",
        "nodeTaintsPolicy": "Whether taints limit the domains.",
        "topologyKey": "Label of nodes whose values are the domains.",
        "whenUnsatisfiable": "DoNotSchedule, or ScheduleAnyway.",
    },
    "Volume": {
        **_OLD_VOLUMES,
        "csi": "A volume of a CSI driver that lives as long as the pod.",
        "downwardAPI": "Files with fields of the pod.",
        "ephemeral": "A claim that is made for the pod and deleted with it.",
        "fc": "A Fibre Channel device.",
        "image": "The files of an OCI image.",
        "iscsi": "An iSCSI device.",
        "nfs": "A directory of an NFS server.",
    },
    "PersistentVolumeSpec": {
        **{name: words for name, words in _OLD_VOLUMES.items() if name != "gitRepo"},
        "accessModes": "How the volume can be mounted.",
        "capacity": "Size of the volume.",
        "claimRef": "The claim that has the volume.",
        "csi": "A volume of a CSI driver.",
        "fc": "A Fibre Channel device.",
        "hostPath": "A directory of the node; for tests.",
        "iscsi": "An iSCSI device.",
        "local": "A disk of one node.",
        "mountOptions": "Options for mounting, such as ro.",
        "nfs": "A directory of an NFS server.",
        "nodeAffinity": "Nodes from which the volume can be reached.",
        "persistentVolumeReclaimPolicy": "What happens to a released volume: Retain or Delete.",
        "storageClassName": "Name of its StorageClass.",
        "volumeAttributesClassName": "Name of its VolumeAttributesClass.",
        "volumeMode": "Filesystem, or Block.",
    },
    "PersistentVolumeClaimSpec": {
        "dataSourceRef": "Object from which the volume is filled, of any kind.",
        "selector": "Labels of the volumes that are considered.",
        "volumeAttributesClassName": "Name of a class of attributes that can change later.",
    },
    "StorageClass": {
        "allowVolumeExpansion": "Whether claims can grow.",
        "allowedTopologies": "Where volumes are made.",
        "mountOptions": "Options for mounting its volumes.",
        "parameters": "Settings for the provisioner.",
        "provisioner": "Name of the driver that makes volumes.",
        "reclaimPolicy": "What happens to a released volume; Delete by default.",
        "volumeBindingMode": "Immediate, or WaitForFirstConsumer.",
    },
    "ServiceSpec": {
        "allocateLoadBalancerNodePorts": "Whether a load balancer's ports get node ports.",
        "healthCheckNodePort": "Node port at which load balancers ask for health.",
        "ipFamilyPolicy": "SingleStack, PreferDualStack or RequireDualStack.",
        "loadBalancerIP": "Deprecated wish for an address of the load balancer.",
        "loadBalancerSourceRanges": "Networks from which the load balancer is reached.",
        "sessionAffinityConfig": "Settings of session affinity.",
        "trafficDistribution": "Which endpoints are preferred, such as PreferSameZone.",
    },
    "NodeSpec": {
        "configSource": "No longer used.",
        "externalID": "No longer used.",
        "podCIDR": "Network of the pods of the node.",
        "podCIDRs": "Networks of the pods of the node, one for each IP family.",
        "providerID": "Identifies the machine at its cloud.",
        "taints": "What keeps pods away that do not tolerate it.",
        "unschedulable": "Whether new pods are kept away.",
    },
    "Taint": {
        "effect": "NoSchedule, PreferNoSchedule or NoExecute.",
        "key": "Name of the taint.",
        "timeAdded": "When the taint was added.",
        "value": "Value of the taint.",
    },
    "JobSpec": {
        "backoffLimitPerIndex": "How often the pod of an index may fail.",
        "managedBy": "Name of the controller of the job, if another one than usual.",
        "maxFailedIndexes": "How many indexes may fail before the job fails.",
        "podReplacementPolicy": "When a terminating pod is replaced.",
        "successPolicy": "When the job counts as a success before all pods do.",
    },
    "JobTemplateSpec": {"metadata": "Labels and annotations of the jobs.", "spec": "The jobs."},
    "PodTemplateSpec": {"metadata": "Labels and annotations of the pods."},
    "StatefulSetSpec": {
        "ordinals": "Numbers in the names of the pods.",
        "persistentVolumeClaimRetentionPolicy": "What happens to the claims of removed pods.",
    },
    "StatefulSetUpdateStrategy": _UPDATE,
    "DaemonSetUpdateStrategy": _UPDATE,
    "PodDisruptionBudgetSpec": {
        "unhealthyPodEvictionPolicy": "When pods that are not ready may be evicted.",
    },
    "Role": {"rules": "What the role allows."},
    "ClusterRole": {
        "aggregationRule": "Selects cluster roles whose rules are added.",
        "rules": "What the role allows.",
    },
    "ClusterRoleBinding": {
        "roleRef": "The cluster role that is granted. It cannot change.",
        "subjects": "To which users, groups and accounts.",
    },
    "Subject": {"apiGroup": "API group of the subject; empty for accounts."},
    "IngressRule": {"host": "Host name of requests; empty for any.", "http": "Paths."},
    "HTTPIngressRuleValue": {"paths": "Paths and where their requests go."},
    "HTTPIngressPath": {
        "backend": "Where the requests go.",
        "path": "Path of requests.",
        "pathType": "Exact, Prefix or ImplementationSpecific.",
    },
    "IngressBackend": {"resource": "An object of another kind.", "service": "A Service."},
    "IngressServiceBackend": {"name": "Name of the Service.", "port": "Its port."},
    "ServiceBackendPort": {"name": "Name of the port.", "number": "Number of the port."},
    "IngressTLS": {
        "hosts": "Host names in the certificate.",
        "secretName": "Secret with certificate and key.",
    },
    "NetworkPolicyIngressRule": {"from": "Allowed sources.", "ports": "Allowed ports."},
    "NetworkPolicyEgressRule": {"ports": "Allowed ports.", "to": "Allowed destinations."},
    "NetworkPolicyPeer": {
        "ipBlock": "A network.",
        "namespaceSelector": "Labels of namespaces.",
        "podSelector": "Labels of pods.",
    },
    "NetworkPolicyPort": {
        "endPort": "Last port of a range.",
        "port": "Number or name of the port.",
        "protocol": "TCP, UDP or SCTP.",
    },
    "IPBlock": {"cidr": "The network.", "except": "Parts of it that are left out."},
}
