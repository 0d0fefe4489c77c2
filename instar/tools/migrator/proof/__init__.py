"""Checks before a migration writes: what the rewrite of each object would change. Also keeps
records of complete passes.

Called by ``rewrite_pass.py``, ``instar migrate --plan`` and ``instar upgrade``.
"""
