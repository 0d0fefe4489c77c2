"""Kubernetes API conventions: names, selectors, discovery documents, CRD types, text encodings.

Used by all other packages of ``kube``, by the server and by the tools.
"""
