"""What Kubernetes defines, as pure functions on plain values.

Schemas, CEL, CRD rules, OpenAPI, server-side apply, patches, admission, RBAC, protobuf and the
rules of built-in kinds. The server and the tools call these; nothing here does I/O.
"""
