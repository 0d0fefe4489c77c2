"""Validation of values against a compiled structural schema."""
