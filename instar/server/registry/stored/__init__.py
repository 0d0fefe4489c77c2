"""Stored objects: cache entries, their JSON at each version, lists, watches, and the access to the
store."""
