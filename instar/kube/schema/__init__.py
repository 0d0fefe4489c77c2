"""Structural schemas: prune, default, validate values. ``pipeline.py`` has the order of steps."""
