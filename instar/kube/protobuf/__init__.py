"""Kubernetes' protobuf encoding of built-in objects: bytes ↔ JSON values.

``envelope.py`` is the entry point for the REST layer. The codec is driven by the message tables of
``instar.kube.facts``; only the few types with custom JSON code in Go are handled by name.
"""
