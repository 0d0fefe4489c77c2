"""Endpoints that do not serve objects: discovery, OpenAPI, health, metrics, and instar's own paths.

``server/app.py`` calls it for every path that does not name a resource.
"""
