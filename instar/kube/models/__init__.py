"""Python models of custom resources: schemas to source text (``instar types``), classes to CRDs.

Both directions use the intermediate form of ``shapes.py``. Pure: the CLI imports the user's module
and writes files; model libraries (pydantic, msgspec) are not imported.
"""
