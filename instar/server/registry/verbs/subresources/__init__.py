"""Verbs of subresources: scale, binding, eviction, and the admission of other subresource calls.

``server/rest`` calls them.
"""
