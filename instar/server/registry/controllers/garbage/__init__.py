"""Garbage collector: deletes objects without owners and finishes orphan and foreground deletion."""
