"""Generators of Python source, one per kind of model class: pydantic model, msgspec struct,
dataclass, typed dict.

``writing.py`` has the base class. ``modules.py`` picks the generator that ``instar types --python``
names.
"""
