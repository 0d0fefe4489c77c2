"""Validation rules of CustomResourceDefinitions; ``crd.py`` and ``update.py`` are the entry points.

Called by ``server/registry/kinds/crds.py`` on every CRD write, by the reviewer and the snapshots.
The "internal form" of a CRD is v1beta1's layout for all versions (``kube/api/crd_codec.py``).
"""
