"""Descriptions of the fields of Nodes, Namespaces and Events, written for this project.

Called by ``builtin.py``, beside ``field_descriptions.py``, whose form the table has.
"""

from __future__ import annotations

from collections.abc import Mapping

_FEATURES = "Features of the kubelet, the runtime and the kernel."

NODE_FIELDS: Mapping[str, Mapping[str, str]] = {
    "NodeStatus": {
        "addresses": "Addresses of the node: host names, internal and external.",
        "allocatable": "Resources that pods can use.",
        "capacity": "All resources of the node.",
        "conditions": "Last observed conditions, one entry per type.",
        "config": "State of a configuration by ConfigMap, which was removed from Kubernetes.",
        "daemonEndpoints": "Ports of the programs on the node.",
        "declaredFeatures": "Names of features that the node says it has.",
        "features": _FEATURES,
        "images": "Images on the node, the largest first.",
        "nodeInfo": "Versions and ids of the machine and its programs.",
        "phase": "Old field that is not set any more.",
        "runtimeHandlers": "Handlers that a RuntimeClass can name.",
        "volumesAttached": "Volumes that are attached to the node.",
        "volumesInUse": "Attached volumes that the node has mounted.",
    },
    "NodeAddress": {
        "address": "The address.",
        "type": "Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.",
    },
    "NodeConfigSource": {"configMap": "The ConfigMap with the configuration."},
    "ConfigMapNodeConfigSource": {
        "kubeletConfigKey": "Key with the kubelet's configuration.",
        "name": "Name of the ConfigMap.",
        "namespace": "Namespace of the ConfigMap.",
        "resourceVersion": "resourceVersion of the ConfigMap; only in a status.",
        "uid": "uid of the ConfigMap; only in a status.",
    },
    "NodeConfigStatus": {
        "active": "The configuration that the node uses.",
        "assigned": "The configuration that the node will use.",
        "error": "Why the assigned configuration is not used.",
        "lastKnownGood": "The configuration that the node goes back to after an error.",
    },
    "NodeDaemonEndpoints": {"kubeletEndpoint": "Port of the kubelet."},
    "DaemonEndpoint": {"Port": "Number of the port."},
    "NodeFeatures": {
        "supplementalGroupsPolicy": "Whether pods may set supplementalGroupsPolicy.",
    },
    "NodeRuntimeHandler": {
        "features": _FEATURES,
        "name": "Name of the handler; empty for the default.",
    },
    "NodeRuntimeHandlerFeatures": {
        "recursiveReadOnlyMounts": "Whether mounts can be read-only with all mounts below them.",
        "userNamespaces": "Whether pods can have a user namespace of their own.",
    },
    "NodeSwapStatus": {"capacity": "Swap space in bytes."},
    "NodeSystemInfo": {
        "architecture": "Architecture of the machine.",
        "bootID": "Id that changes with each boot.",
        "containerRuntimeVersion": "Container runtime and its version, as type://version.",
        "kernelVersion": "Version of the kernel.",
        "kubeProxyVersion": "Old field that is not set any more.",
        "kubeletVersion": "Version of the kubelet.",
        "machineID": "Id of the machine in the cluster.",
        "operatingSystem": "Operating system.",
        "osImage": "Name of the operating system's image.",
        "swap": "Swap space of the node.",
        "systemUUID": "Id of the machine from its firmware.",
    },
    "AttachedVolume": {
        "devicePath": "Path of the device on the node.",
        "name": "Name of the attached volume.",
    },
    "ContainerImage": {
        "names": "Names of the image.",
        "sizeBytes": "Size of the image in bytes.",
    },
    "NamespaceSpec": {
        "finalizers": "Must be empty before the namespace is removed.",
    },
    "Event": {
        "action": "What was done, or not done, to the object.",
        "count": "How often the event happened.",
        "eventTime": "When the event was first seen.",
        "firstTimestamp": "When the event was first recorded.",
        "involvedObject": "The object that the event is about.",
        "lastTimestamp": "When the event was last recorded.",
        "message": "Explanation for people.",
        "reason": "Explanation in one word, for programs.",
        "related": "A second object that the event is about.",
        "reportingComponent": "Controller that sent the event.",
        "reportingInstance": "Instance of that controller, such as the name of its pod.",
        "series": "How often, and when last, the event happened again.",
        "source": "Program and node that reported the event.",
        "type": "Normal or Warning.",
    },
    "EventSeries": {
        "count": "How often the event happened.",
        "lastObservedTime": "When the event happened last.",
    },
    "EventSource": {
        "component": "Program that reported the event.",
        "host": "Node of that program.",
    },
}
"""By type and field."""
