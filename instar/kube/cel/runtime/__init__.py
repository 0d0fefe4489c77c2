"""CEL evaluation: compiles a checked expression into closures that run within a cost budget.

``engine.prepare`` compiles with it; schema rules and admission expressions run the result.
"""
