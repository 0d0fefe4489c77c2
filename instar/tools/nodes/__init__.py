"""Simulated nodes: Node objects with leases, and pods that move through their phases by rules.

``instar nodes`` runs it against any cluster, so that Deployments, Jobs and StatefulSets of a real
kube-controller-manager and kube-scheduler become ready or complete without a kubelet.
"""
