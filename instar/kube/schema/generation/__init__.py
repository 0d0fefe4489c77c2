"""Generates objects that fit a schema, with hypothesis."""
