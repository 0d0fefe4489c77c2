"""Verbs on objects: owns the order of steps between a decoded request and the store.

Knows no header and no media type.
"""
