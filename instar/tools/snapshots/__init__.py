"""Cluster snapshots: capture from a cluster or a store, readers for several formats, and loading
into a server.

Called by ``instar snapshot``, ``serve --from``, ``rehearse`` and ``restore``.
"""
