"""The string formats of OpenAPI schemas (``date-time``, ``ipv4``, ``uuid`` …)."""
