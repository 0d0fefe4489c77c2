"""Structural schemas: pruning, defaulting and validation of objects; ``pipeline.py`` has the
order of steps."""
