"""Stored objects: their bytes, how they are cached, followed and shown at a version."""
