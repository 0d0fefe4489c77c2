"""The schemas a server publishes about itself, as OpenAPI v3 and v2.

Pure functions from ``Resource`` values to JSON-ready dicts (shared sub-dicts are read-only) or
bytes. Nothing here serves, caches or decides what is established.
"""
