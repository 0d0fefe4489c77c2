"""Lifecycle of a server: composition from settings, start, stop, watchdog.

``instar serve``, ``instar.testing`` and the tools start servers with ``lifetime.py`` or
``embedded.py``.
"""
