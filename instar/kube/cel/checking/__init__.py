"""CEL type checking and cost estimation of a parsed expression.

``engine.py`` calls it after parsing; its result is the input of ``runtime``.
"""
