"""CustomResourceDefinitions: decoding documents, defaults, validation, and computing their status.

Called by the CRD kind and controller of the server (``server/registry``) and by the tools that read
CRDs.
"""
