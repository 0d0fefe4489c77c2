"""The Service: here only a name that webhooks are reached by, but with all its fields."""

from __future__ import annotations

from instar.openapi.builtin_fields import ATOMIC_LIST, ATOMIC_MAP, condition, kind_of_object
from instar.openapi.shapes import (
    array,
    boolean,
    int_or_text,
    integer,
    list_by,
    obj,
    text,
    text_map,
    texts,
)

_PORT = obj(
    "A port of the service.",
    {
        "appProtocol": text("The application protocol spoken."),
        "name": text("Name of the port; needed where there are several."),
        "nodePort": integer("The port on each node."),
        "port": integer("The port of the service."),
        "protocol": text("TCP, UDP or SCTP.", default="TCP"),
        "targetPort": int_or_text("Number or name of the port of the pods."),
    },
    "port",
)

_SPEC = obj(
    "How the service is reached and what stands behind it.",
    {
        "allocateLoadBalancerNodePorts": boolean("Whether a load balancer gets node ports."),
        "clusterIP": text("Its address, or None for no address."),
        "clusterIPs": texts("Its addresses, one per IP family.", **ATOMIC_LIST),
        "externalIPs": texts("Further addresses at which nodes accept traffic.", **ATOMIC_LIST),
        "externalName": text("The DNS name the service stands for."),
        "externalTrafficPolicy": text("Cluster or Local, for traffic from outside."),
        "healthCheckNodePort": integer("The node port for health checks."),
        "internalTrafficPolicy": text("Cluster or Local, for traffic from inside."),
        "ipFamilies": texts("IPv4, IPv6 or both.", **ATOMIC_LIST),
        "ipFamilyPolicy": text("SingleStack, PreferDualStack or RequireDualStack."),
        "loadBalancerClass": text("Who implements the load balancer."),
        "loadBalancerIP": text("Deprecated: the address a load balancer should get."),
        "loadBalancerSourceRanges": texts(
            "Addresses that may use the load balancer.", **ATOMIC_LIST
        ),
        "ports": array(
            _PORT, "The ports of the service.", **list_by("port", "protocol", merge="port")
        ),
        "publishNotReadyAddresses": boolean("Whether pods are listed before they are ready."),
        "selector": text_map("Labels of the pods behind the service.", **ATOMIC_MAP),
        "sessionAffinity": text("ClientIP or None.", default="None"),
        "sessionAffinityConfig": obj(
            "Settings of the affinity.",
            {
                "clientIP": obj(
                    "Settings of affinity by client address.",
                    {"timeoutSeconds": integer("How long a client stays with a pod.")},
                )
            },
        ),
        "trafficDistribution": text("Which endpoints are preferred."),
        "type": text("ClusterIP, NodePort, LoadBalancer or ExternalName.", default="ClusterIP"),
    },
)

_INGRESS = obj(
    "A place at which the load balancer is reached.",
    {
        "hostname": text("Its DNS name."),
        "ip": text("Its address."),
        "ipMode": text("VIP or Proxy."),
        "ports": array(
            obj(
                "A port of the load balancer.",
                {
                    "error": text("What is wrong with the port."),
                    "port": integer("Its number."),
                    "protocol": text("TCP, UDP or SCTP."),
                },
                "port",
                "protocol",
            ),
            "Its ports.",
            **ATOMIC_LIST,
        ),
    },
)

SERVICE = kind_of_object(
    "A stable name and address for something on the network.",
    {
        "spec": _SPEC,
        "status": obj(
            "State of the service.",
            {
                "conditions": array(
                    condition("One thing seen about the service."),
                    "What was seen about the service.",
                    **list_by("type", merge="type"),
                ),
                "loadBalancer": obj(
                    "State of the load balancer.",
                    {"ingress": array(_INGRESS, "Where it is reached.", **ATOMIC_LIST)},
                ),
            },
        ),
    },
)
