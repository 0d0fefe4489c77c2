"""The CEL language with Kubernetes' libraries: parser, type checker, cost model and evaluation.

Independent of schemas, objects and the server; ``engine.py`` is the entry point.
"""
