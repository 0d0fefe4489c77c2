"""Packed objects: cache entries with compressed bytes, made in the background.

``backend.py`` has a ``Packer``; the collectors of lists and ``codec.py`` read packed entries.
"""
