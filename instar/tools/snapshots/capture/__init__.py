"""Capturing a snapshot: from a cluster through its API, from a store, or from another snapshot.

``instar snapshot`` calls ``taking.py``, which reads one of the three sources.
"""
