"""The structural schema (``Structural``): parsing, validation, traversal and interning."""
