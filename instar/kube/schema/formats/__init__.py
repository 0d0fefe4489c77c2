"""The string formats of OpenAPI schemas (``date-time``, ``ipv4``, ``uuid`` …).

Schema validation, CRD warnings and the reviewer look formats up in ``named.py``.
"""
