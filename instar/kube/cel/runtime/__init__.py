"""CEL evaluation: a checked expression becomes closures, which run under a cost budget."""
