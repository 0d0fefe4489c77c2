"""Reads Python classes into the intermediate form ``ModelShape``: pydantic models, dataclasses,
typed dicts, msgspec structs.

Called by ``instar crd``. Libraries are recognised by attributes of their classes and not imported.
"""
