"""Text forms of objects: JSON, YAML, PEM and base64 as Go reads and writes them.

Called by the REST layer for bodies and responses, by the store for objects, and by the tools for
manifests.
"""
