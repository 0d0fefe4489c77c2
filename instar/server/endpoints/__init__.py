"""Endpoints besides objects: discovery, OpenAPI, health, metrics, and instar's own paths."""
