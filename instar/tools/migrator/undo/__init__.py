"""Undo of a migration: the journal of objects before the rewrite, and putting them back."""
