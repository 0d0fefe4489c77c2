"""Effects of a CRD change on admission: webhooks and policies written for the old CRD. Pure.

``instar review`` calls ``findings.py``; configurations come as documents from ``sources.py``.
"""
