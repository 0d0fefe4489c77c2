"""Undo of a migration: the journal of objects before the rewrite, and putting them back.

Called by ``rewrite_pass.py`` and by ``instar migrate --undo`` and ``instar upgrade``.
"""
