"""Kubernetes' own rules and formats, as pure functions on JSON values.

Schemas, CEL, CRD rules, OpenAPI, server-side apply, patches, admission, RBAC, protobuf and the
rules of built-in kinds. The server and the tools call these; modules here do no I/O.
"""
