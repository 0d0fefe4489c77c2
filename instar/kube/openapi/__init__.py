"""OpenAPI v3 and v2 documents of the server, as pure functions.

From ``DiscoveryResource`` values to JSON-ready dicts (shared sub-dicts are read-only) or bytes.
``server/endpoints/openapi.py`` serves and caches them.
"""
