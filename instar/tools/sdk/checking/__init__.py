"""``instar check``: laws that every conversion must keep, and the search for objects that break
them.

Called by ``cli/commands/check.py``, ``instar.testing`` and the console's check view.
"""
