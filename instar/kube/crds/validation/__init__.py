"""Validation rules of CustomResourceDefinitions; ``crd.py`` and ``update.py`` are the entry
points."""
