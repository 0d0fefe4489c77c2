"""Stored objects: cache entries, their JSON at each version, lists, watches, and the access to the
store.

The verbs and controllers call ``backend.py``; ``codec.py`` makes the JSON of responses.
"""
