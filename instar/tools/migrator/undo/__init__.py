"""Undo of a migration: the journal of objects before the rewrite, and their restoration.

Called by ``rewrite_pass.py`` and by ``instar migrate --undo`` and ``instar upgrade``.
"""
