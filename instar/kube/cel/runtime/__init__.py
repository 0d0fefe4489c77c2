"""CEL evaluation: compiles a checked expression into closures that run within a cost budget."""
