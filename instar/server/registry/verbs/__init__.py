"""Verbs on objects: get, list, watch, create, update, patch, apply, delete, and what they share.

``server/rest`` and the controllers call them.
"""
