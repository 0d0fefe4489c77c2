"""CustomResourceDefinitions: decoding documents, defaults, validation, and computing their
status."""
