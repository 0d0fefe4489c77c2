"""OpenAPI documents in protobuf, as gnostic defines the messages.

``server/endpoints/openapi.py`` calls ``v2_document.py`` and ``v3_document.py``, which write with
``messages.py``.
"""
