"""Reads Python classes into shapes: pydantic models, dataclasses, typed dicts, msgspec structs.

Libraries are recognised by attributes of their classes and not imported.
"""
