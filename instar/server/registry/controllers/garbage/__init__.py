"""Garbage collection: what has lost its owners goes, what waits for its dependents is let go."""
