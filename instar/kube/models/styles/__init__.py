"""Writers of generated classes in four styles (pydantic, msgspec, dataclass, typed dict);
``writing.py`` has the base class."""
