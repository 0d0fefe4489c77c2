"""Stores: bytes under keys with one global revision. ``store.py`` is the contract of all."""
