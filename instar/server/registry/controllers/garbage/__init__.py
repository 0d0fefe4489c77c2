"""Garbage collector: deletes objects without owners and finishes orphan and foreground deletion.

``server/lifecycle/controller_setup.py`` creates ``GarbageCollector``; it follows all collections of
the watch cache.
"""
