"""Generates objects that fit a schema, with hypothesis; used by ``instar check`` and tests."""
