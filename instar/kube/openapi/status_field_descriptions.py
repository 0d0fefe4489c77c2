"""Descriptions of the fields in the statuses of the kinds that people use most, written for this
project.

Called by ``builtin.py``, beside ``field_descriptions.py``, whose form the table has.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONDITIONS = "Last observed conditions, one entry per type."
_GENERATION = "The generation that the controller has processed."
_COLLISIONS = "How often the hash in the name of a created object was taken; part of the next hash."
_MESSAGE = "Explanation for people."
_REASON = "Explanation in one word, for programs."
_TERMINATING = "Pods that are being deleted and still run."
_CURRENT = "Value that was measured last."
_CONTAINER = "Name of the container."
_METRIC_NAME = "Name of the metric, or of the resource."
_METRIC = "The metric, by name and labels."
_INGRESS = "Addresses that the load balancer listens on."
_LB_ADDRESS = {
    "hostname": "Host name of the load balancer, where it has one.",
    "ip": "IP address of the load balancer, where it has one.",
    "ports": "Ports of the Service, and whether the load balancer serves them.",
}
_LB_PORT = {
    "error": "Why the port is not served, as a name in the form of a label.",
    "port": "Number of the port.",
    "protocol": "TCP, UDP or SCTP.",
}
_RESOURCE_STATES = "Requests that are being resized, and how far that is."
_METRICS = {
    "containerResource": "CPU or memory of one container in each pod.",
    "external": "A metric that belongs to no object of the cluster.",
    "object": "A metric of one object.",
    "pods": "A metric of each pod, averaged.",
    "resource": "CPU or memory of each pod.",
    "type": "Which of the other fields is set.",
}

STATUS_FIELDS: Mapping[str, Mapping[str, str]] = {
    "DaemonSetStatus": {
        "collisionCount": _COLLISIONS,
        "conditions": _CONDITIONS,
        "currentNumberScheduled": "Nodes that should run the pod and do.",
        "desiredNumberScheduled": "Nodes that should run the pod.",
        "numberAvailable": "Nodes with a pod that has been ready for minReadySeconds.",
        "numberMisscheduled": "Nodes that run the pod and should not.",
        "numberReady": "Nodes with a ready pod.",
        "numberUnavailable": "Nodes that should run the pod and have none that is available.",
        "observedGeneration": _GENERATION,
        "updatedNumberScheduled": "Nodes with a pod of the newest template.",
    },
    "DeploymentStatus": {
        "collisionCount": _COLLISIONS,
        "terminatingReplicas": _TERMINATING,
        "unavailableReplicas": "Pods that are still missing for the deployment to be complete.",
    },
    "ReplicaSetStatus": {
        "availableReplicas": "Pods that have been ready for minReadySeconds.",
        "conditions": _CONDITIONS,
        "fullyLabeledReplicas": "Pods with all labels of the template.",
        "observedGeneration": _GENERATION,
        "readyReplicas": "Pods that are ready.",
        "replicas": "Pods that were observed last.",
        "terminatingReplicas": _TERMINATING,
    },
    "StatefulSetStatus": {
        "availableReplicas": "Pods that have been ready for minReadySeconds.",
        "collisionCount": _COLLISIONS,
        "conditions": _CONDITIONS,
        "currentReplicas": "Pods of currentRevision.",
        "currentRevision": "Revision of the pods with the lowest numbers.",
        "observedGeneration": _GENERATION,
        "readyReplicas": "Pods that are ready.",
        "replicas": "Pods that the controller has created.",
        "updateRevision": "Revision of the pods with the highest numbers.",
        "updatedReplicas": "Pods of updateRevision.",
    },
    "HorizontalPodAutoscalerStatus": {
        "conditions": "Whether it can scale, is scaling, and is held by a limit.",
        "currentMetrics": "Metrics as they were measured last.",
        "currentReplicas": "Replicas that were seen last.",
        "desiredReplicas": "Replicas that the metrics ask for.",
        "lastScaleTime": "When the number of replicas was changed last.",
        "observedGeneration": _GENERATION,
    },
    "MetricStatus": _METRICS,
    "ContainerResourceMetricStatus": {
        "container": _CONTAINER,
        "current": _CURRENT,
        "name": _METRIC_NAME,
    },
    "ExternalMetricStatus": {"current": _CURRENT, "metric": _METRIC},
    "ObjectMetricStatus": {
        "current": _CURRENT,
        "describedObject": "The object that the metric is of.",
        "metric": _METRIC,
    },
    "PodsMetricStatus": {"current": _CURRENT, "metric": _METRIC},
    "ResourceMetricStatus": {"current": _CURRENT, "name": _METRIC_NAME},
    "MetricValueStatus": {
        "averageUtilization": "Percentage of what the pods request, averaged.",
        "averageValue": "Quantity, averaged over the pods.",
        "value": "Quantity.",
    },
    "CronJobStatus": {
        "active": "Jobs that run now.",
        "lastScheduleTime": "When a job was started last.",
        "lastSuccessfulTime": "When a job completed last.",
    },
    "JobStatus": {
        "active": "Pods that run or wait and are not being deleted.",
        "completedIndexes": "Completed indexes, as numbers and ranges: 1,3-5,7.",
        "completionTime": "When the job completed; absent if it failed.",
        "conditions": _CONDITIONS,
        "failed": "Pods that failed.",
        "failedIndexes": "Failed indexes, as numbers and ranges.",
        "ready": "Active pods that are ready.",
        "startTime": "When the controller started the job, or resumed it.",
        "succeeded": "Pods that succeeded.",
        "terminating": _TERMINATING,
        "uncountedTerminatedPods": "Finished pods that are not part of the counts yet.",
    },
    "UncountedTerminatedPods": {
        "failed": "UIDs of failed pods.",
        "succeeded": "UIDs of pods that succeeded.",
    },
    "NamespaceStatus": {
        "conditions": "What holds the namespace while it is deleted.",
        "phase": "Active or Terminating.",
    },
    "PersistentVolumeStatus": {
        "lastPhaseTransitionTime": "When the phase last changed.",
        "message": _MESSAGE,
        "phase": "Pending, Available, Bound, Released or Failed.",
        "reason": _REASON,
    },
    "PersistentVolumeClaimStatus": {
        "accessModes": "Access modes of the bound volume.",
        "allocatedResourceStatuses": _RESOURCE_STATES,
        "allocatedResources": "Size that is reserved, while a volume is resized, too.",
        "capacity": "Size of the bound volume.",
        "conditions": _CONDITIONS,
        "currentVolumeAttributesClassName": "The VolumeAttributesClass that the volume has now.",
        "modifyVolumeStatus": "State of a change to another VolumeAttributesClass.",
        "phase": "Pending, Bound or Lost.",
    },
    "ModifyVolumeStatus": {
        "status": "Pending, InProgress or Infeasible.",
        "targetVolumeAttributesClassName": "The VolumeAttributesClass that the volume will have.",
    },
    "ServiceStatus": {"conditions": _CONDITIONS, "loadBalancer": "State of the load balancer."},
    "LoadBalancerStatus": {"ingress": _INGRESS},
    "LoadBalancerIngress": {
        **_LB_ADDRESS,
        "ipMode": "VIP, or Proxy where packets reach a node with the node's own address.",
    },
    "PortStatus": _LB_PORT,
    "IngressStatus": {"loadBalancer": "State of the load balancer."},
    "IngressLoadBalancerStatus": {"ingress": _INGRESS},
    "IngressLoadBalancerIngress": _LB_ADDRESS,
    "IngressPortStatus": _LB_PORT,
    "PodDisruptionBudgetStatus": {
        "conditions": _CONDITIONS,
        "currentHealthy": "Ready pods.",
        "desiredHealthy": "Ready pods that the budget asks for.",
        "disruptedPods": "Evicted pods that are not yet seen as deleted, with the time.",
        "disruptionsAllowed": "Pods that may be evicted now.",
        "expectedPods": "Pods that the budget counts.",
        "observedGeneration": _GENERATION,
    },
    "PodStatus": {
        "allocatedResources": "Resources that the node has reserved for the pod.",
        "ephemeralContainerStatuses": "State of each ephemeral container.",
        "extendedResourceClaimStatus": "The claim made for requests of extended resources.",
        "hostIPs": "Addresses of the node.",
        "initContainerStatuses": "State of each init container.",
        "message": _MESSAGE,
        "nodeAllocatableResourceClaimStatuses": "Claims that use CPU or memory of the node.",
        "nominatedNodeName": "Node on which room is made for the pod.",
        "observedGeneration": "The generation of the pod that the kubelet has processed.",
        "podIPs": "Addresses of the pod; at most one each of IPv4 and IPv6.",
        "resize": "State of a resize; conditions have replaced it.",
        "resourceClaimStatuses": "Names of the ResourceClaims made for the pod.",
        "resources": "Resources of the whole pod, as they are in force.",
    },
    "PodIP": {"ip": "The address."},
    "HostIP": {"ip": "The address."},
    "PodResourceClaimStatus": {
        "name": "Name of the entry in spec.resourceClaims.",
        "resourceClaimName": "Name of the ResourceClaim that was made for it.",
    },
    "PodExtendedResourceClaimStatus": {
        "requestMappings": "Requests of containers, and the requests in the claim.",
        "resourceClaimName": "Name of the ResourceClaim.",
    },
    "ContainerExtendedResourceRequest": {
        "containerName": _CONTAINER,
        "requestName": "Name of the request in the claim.",
        "resourceName": "Name of the extended resource.",
    },
    "NodeAllocatableResourceClaimStatus": {
        "containers": "Names of the containers that use the claim.",
        "resourceClaimName": "Name of the ResourceClaim.",
        "resources": "CPU, memory and the like that it takes from the node.",
    },
    "ContainerStatus": {
        "allocatedResources": "Resources that the node has reserved for the container.",
        "allocatedResourcesStatus": "Health of the devices of the container.",
        "containerID": "The container in the runtime, as type://id.",
        "image": "Image of the container.",
        "imageID": "Digest of the image.",
        "lastState": "State before the last restart.",
        "name": _CONTAINER,
        "ready": "Whether the readiness probe succeeds.",
        "resources": "Requests and limits, as they are in force.",
        "restartCount": "How often the container was started again.",
        "started": "Whether postStart and the startup probe are done.",
        "state": "Present state.",
        "stopSignal": "Signal that stops the container.",
        "user": "User and groups of the first process.",
        "volumeMounts": "State of each mounted volume.",
    },
    "ContainerState": {
        "running": "Set while the container runs.",
        "terminated": "Set when the container has ended.",
        "waiting": "Set while the container waits to be started.",
    },
    "ContainerStateRunning": {"startedAt": "When the container was started."},
    "ContainerStateTerminated": {
        "containerID": "The container in the runtime, as type://id.",
        "exitCode": "Exit code of the container.",
        "finishedAt": "When the container ended.",
        "message": _MESSAGE,
        "reason": _REASON,
        "signal": "Signal that ended the container.",
        "startedAt": "When the container was started.",
    },
    "ContainerStateWaiting": {"message": _MESSAGE, "reason": _REASON},
    "ContainerUser": {"linux": "User and groups on Linux."},
    "LinuxContainerUser": {
        "gid": "Group id of the first process.",
        "supplementalGroups": "Further groups of the first process.",
        "uid": "User id of the first process.",
    },
    "ResourceStatus": {
        "name": "Name of the resource; of a claim: claim:NAME/REQUEST.",
        "resources": "Health of each device.",
    },
    "ResourceHealth": {
        "health": "Healthy, Unhealthy or Unknown.",
        "message": _MESSAGE,
        "resourceID": "Id of the device, unique on the node.",
    },
    "VolumeMountStatus": {
        "mountPath": "Path in the container.",
        "name": "Name of the volume.",
        "readOnly": "Whether the mount is read-only.",
        "recursiveReadOnly": "Whether mounts below it are read-only, too.",
        "volumeStatus": "State of the volume, where its type has one.",
    },
    "VolumeStatus": {"image": "State of an image volume."},
    "ImageVolumeStatus": {"imageRef": "Digest of the image."},
}
"""By type and field."""
