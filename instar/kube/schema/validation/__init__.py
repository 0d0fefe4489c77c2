"""Validation of values against a compiled structural schema.

``pipeline.py`` calls it through ``compiled.py`` on every write.
"""
