"""Insight: statistics about objects and clients beyond the Kubernetes API (``/instar/…``).

``server/endpoints/insight.py`` serves them; the request path and the watch cache feed them.
"""
