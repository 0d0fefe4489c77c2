"""Rewrites stored objects at the storage version of their CRD. Before each write it is checked that
no version of the object will read differently afterwards.

``instar migrate``, ``instar upgrade``, ``instar rehearse`` and the console call ``migration.py``.
"""
