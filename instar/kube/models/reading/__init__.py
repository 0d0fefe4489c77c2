"""From classes to shapes: pydantic models, dataclasses, typed dicts and msgspec structs.

Libraries are recognised by what their classes have; none is imported.
"""
