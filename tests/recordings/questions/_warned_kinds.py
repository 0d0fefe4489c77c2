"""Objects of kinds without pods that are warned about: (group, plural) → name of the case →
the object.

``warnings.py`` asks about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object

OLD_LABEL, _MASTER_LABEL = "beta.kubernetes.io/os", "node-role.kubernetes.io/master"


def _service(**spec: Any) -> Object:
    return {"ports": [{"port": 80}], **spec}


NAMESPACED: Mapping[tuple[str, str], Mapping[str, Object]] = {
    ("", "services"): {
        "external": {"spec": _service(externalIPs=["1.2.3.4"])},
        "external six": {"spec": _service(externalIPs=["2001:DB8::1"])},
        "external refused": {"spec": _service(externalIPs=["1.2.3.4"], type="Odd")},
        "leading zeros": {"spec": _service(externalIPs=["010.2.3.4"])},
        "headless": {
            "spec": _service(
                clusterIP="None",
                externalIPs=["1.2.3.4"],
                loadBalancerIP="1.2.3.4",
                sessionAffinity="ClientIP",
            )
        },
        "by name": {
            "spec": {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["1.2.3.4"]}
        },
        "name ignored": {"spec": _service(externalName="a.b")},
        "balancer": {
            "spec": _service(
                type="LoadBalancer",
                loadBalancerIP="2001:DB8::1",
                loadBalancerSourceRanges=["10.0.0.0/8", "2001:DB8::/32"],
            )
        },
        "balancer ambiguous": {
            "spec": _service(type="LoadBalancer", loadBalancerSourceRanges=["10.1.0.0/8"])
        },
        "close": {"spec": _service(trafficDistribution="PreferClose")},
        "hints": {
            "metadata": {"annotations": {"service.kubernetes.io/topology-aware-hints": "Auto"}},
            "spec": _service(),
        },
    },
    ("networking.k8s.io", "ingresses"): {
        "annotated": {
            "metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}},
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        }
    },
    ("networking.k8s.io", "networkpolicies"): {
        "blocks": {
            "spec": {
                "podSelector": {},
                "ingress": [{"from": [{"ipBlock": {"cidr": "2001:DB8::/32"}}]}],
                "egress": [
                    {"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}
                ],
            }
        },
        "ambiguous": {
            "spec": {
                "podSelector": {},
                "ingress": [{"from": [{"ipBlock": {"cidr": "10.1.0.0/8"}}]}],
            }
        },
    },
    ("", "endpoints"): {
        "addresses": {
            "subsets": [
                {
                    "addresses": [{"ip": "2001:DB8::1"}, {"ip": "1.2.3.4"}],
                    "notReadyAddresses": [{"ip": "2001:DB8::2"}],
                    "ports": [{"port": 80}],
                }
            ]
        }
    },
    ("discovery.k8s.io", "endpointslices"): {
        "names": {"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}]},
        "six": {"addressType": "IPv6", "endpoints": [{"addresses": ["2001:DB8::1"]}]},
        "six, managed": {
            "metadata": {
                "labels": {
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"
                }
            },
            "addressType": "IPv6",
            "endpoints": [{"addresses": ["2001:DB8::1"]}],
        },
    },
    ("", "persistentvolumeclaims"): {
        "claim": {
            "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "500m"}, "limits": {"storage": "1500m"}},
            },
        }
    },
    ("storage.k8s.io", "csistoragecapacities"): {
        "topology": {
            "storageClassName": "a",
            "nodeTopology": {
                "matchLabels": {OLD_LABEL: "linux"},
                "matchExpressions": [{"key": _MASTER_LABEL, "operator": "Exists"}],
            },
        }
    },
}
CLUSTER_WIDE: Mapping[tuple[str, str], Mapping[str, Object]] = {
    ("", "nodes"): {
        "external": {"spec": {"externalID": "a"}},
        "source": {
            "spec": {
                "configSource": {
                    "configMap": {"namespace": "a", "name": "b", "kubeletConfigKey": "k"}
                }
            }
        },
        "networks": {"spec": {"podCIDR": "2001:DB8::/64", "podCIDRs": ["2001:DB8::/64"]}},
    },
    ("", "persistentvolumes"): {
        f"{name} volume": {
            "metadata": {
                "annotations": {
                    "volume.beta.kubernetes.io/storage-class": "a",
                    **(
                        {"volume.beta.kubernetes.io/mount-options": "ro"}
                        if name != "storageos"
                        else {}
                    ),
                }
            },
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Recycle" if name == "hostPath" else "Retain",
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": OLD_LABEL, "operator": "Exists"}]}
                        ]
                    }
                },
                name: source,
            },
        }
        for name, source in {
            "hostPath": {"path": "/tmp"},
            "cephfs": {"monitors": ["a"]},
            "rbd": {"monitors": ["a"], "image": "i"},
            "glusterfs": {"endpoints": "a", "path": "b"},
            "storageos": {"volumeName": "a"},
            "photonPersistentDisk": {"pdID": "a"},
        }.items()
    },
    ("storage.k8s.io", "storageclasses"): {
        "topologies": {
            "provisioner": "a.example.com",
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": OLD_LABEL, "values": ["linux"]}]}
            ],
        }
    },
    ("storage.k8s.io", "csidrivers"): {
        "tokens": {"spec": {"tokenRequests": [{"audience": "a"}]}},
    },
    ("node.k8s.io", "runtimeclasses"): {
        "selector": {"handler": "a", "scheduling": {"nodeSelector": {OLD_LABEL: "linux"}}}
    },
    ("resource.k8s.io", "resourceslices"): {
        "driver": {
            "spec": {
                "driver": "A.example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            }
        }
    },
}
