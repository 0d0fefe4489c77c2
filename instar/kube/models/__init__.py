"""Generates Python models from CRDs (``instar types``) and CRDs from Python models
(``instar crd``).

Both directions use the intermediate form of ``shapes.py``. Pure: the CLI imports the user's module
and writes files; model libraries (pydantic, msgspec) are not imported.
"""
