"""Counts before a migration: objects by stored version, fields, users of a version.

Called by ``instar census``, ``instar versions``, ``instar fields`` and the console.
"""
