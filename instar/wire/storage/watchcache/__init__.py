"""The watch cache: current objects and a window of recent changes, followed from a store.

``server/registry/stored/backend.py`` creates it; every read of the server is answered from it.
"""
