"""The named string formats of OpenAPI schemas."""
