"""Kubernetes API conventions: names, selectors, discovery documents, CRD types, text encodings."""
