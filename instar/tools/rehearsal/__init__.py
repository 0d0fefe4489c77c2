"""Rehearses an upgrade on a copy of the cluster: applies each step, replays clients, checks
objects, tries the rollback, and decides go or no-go.

``instar rehearse`` calls ``run.py``. ``steps``, ``clients``, ``version_findings`` and ``estimate``
are pure; ``sandbox`` and the modules that use it send requests to the copy.
"""
