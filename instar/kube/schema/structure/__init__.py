"""The structural schema (``Structural``): parsing, validation, traversal and interning.

CRD validation and ``compiled.py`` parse schemas with it; all other schema modules read the result.
"""
