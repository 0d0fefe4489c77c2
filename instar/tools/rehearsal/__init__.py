"""Rehearsal of an upgrade on a copy of the cluster: steps, clients, objects, rollback, go or
no-go.

``instar rehearse`` and the console call ``run.py``. ``steps``, ``clients``, ``version_findings``
and ``estimate`` are pure; ``sandbox`` and what builds on it send requests to the copy.
"""
