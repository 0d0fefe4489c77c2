"""Time travel as a tool: what happened to an object, and how it comes back.

Sees only the public API of a server; where past states come from is the caller's.
"""
