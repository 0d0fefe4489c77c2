"""``instar check``: the laws (properties that every conversion must have), and the search for
objects that break them.

Called by ``cli/commands/check.py``, ``instar.testing`` and the console's check view.
"""
