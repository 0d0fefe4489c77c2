"""Lifecycle of a server: composition from settings, start, stop, watchdog."""
