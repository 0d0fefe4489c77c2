"""Counts before a migration: objects by stored version, fields, users of a version."""
