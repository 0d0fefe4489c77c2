"""The CEL language and the functions Kubernetes adds to it: text, types, values, cost, evaluation.

Knows no schema, no object and no server: it could be published alone.
"""
