"""Structural schemas: pruning, defaulting and validation of objects; ``pipeline.py`` has the order
of steps.

Called by the registry verbs on every write and read, by the reviewer and by ``instar check``.
"""
