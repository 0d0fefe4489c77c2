"""What is served: the catalog of resources, how each version is served, and the strategy of its
kind.

Routing and the verbs look resources up in ``catalog.py``, which follows the stored CRDs.
"""
