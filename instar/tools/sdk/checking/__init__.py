"""``instar check``: laws that every conversion must keep, and the search for objects that break
them.
"""
