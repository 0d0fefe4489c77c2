"""ObjectMeta: decoding, validation, and the metadata of embedded resources.

Called by ``pipeline.py`` for every object that is written or read.
"""
