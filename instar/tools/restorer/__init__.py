"""Reads the history of objects from a server and restores past states.

``instar history`` and ``instar restore`` call this package. It uses only the public API of a
server; ``instar/cli/commands/restore.py`` opens snapshots.
"""
