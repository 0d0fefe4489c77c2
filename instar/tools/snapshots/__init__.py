"""Cluster snapshots: captured from a cluster or a store, read in many forms, served again.

Called by ``instar snapshot``, ``serve --from``, ``rehearse`` and ``restore``.
"""
