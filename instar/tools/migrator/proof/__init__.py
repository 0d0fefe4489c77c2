"""Proof before a migration writes: what a rewrite would change, and records of passes."""
