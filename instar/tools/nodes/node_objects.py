"""Node and Lease objects of simulated nodes; pure functions used by ``simulation.py``."""

from __future__ import annotations

from collections.abc import Mapping

from instar.base.json_values import Object

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"
MANAGED = "instar.dev/simulated"
"""Label of the nodes that the tool made, so that it never takes over a real one."""
LEASE_SECONDS = 40
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


def node_names(prefix: str, count: int) -> list[str]:
    """Return names with equally many digits, so that they sort by number."""
    width = len(str(max(count - 1, 0)))
    return [f"{prefix}{number:0{width}d}" for number in range(count)]


def node_object(name: str) -> Object:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        MANAGED: "true",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def node_status(name: str, number: int, capacity: Mapping[str, str], now: str) -> Object:
    """Return the status of a Ready node with the given capacity."""
    return {
        "capacity": dict(capacity),
        "allocatable": dict(capacity),
        "addresses": [
            {"type": "InternalIP", "address": _address(192, number)},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [
            {
                "type": kind,
                "status": state,
                "reason": reason,
                "message": "simulated by instar nodes",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, state, reason in _CONDITIONS
        ],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "",
            "osImage": "instar nodes", "containerRuntimeVersion": "simulated://",
            "kubeletVersion": "v1.36.4", "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }  # fmt: skip


def lease_object(name: str, uid: str, now: str) -> Object:
    """Return the node's Lease, which belongs to the Node and is deleted with it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        },
    }


def pod_address(number: int) -> str:
    """Return the address of the n-th pod; addresses repeat after 16 million pods."""
    return _address(10, number)


def _address(first: int, number: int) -> str:
    number += 1
    return f"{first}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
