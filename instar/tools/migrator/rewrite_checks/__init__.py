"""Checks before a migration writes: which fields the rewrite of each object would change. Also
stores the records of complete passes.

Called by ``rewrite_pass.py``, ``instar migrate --plan`` and ``instar upgrade``.
"""
