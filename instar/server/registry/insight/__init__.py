"""Insight: statistics about objects and clients beyond the Kubernetes API (``/instar/…``)."""
