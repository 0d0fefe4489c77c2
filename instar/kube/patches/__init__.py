"""Patches on JSON values: JSON Patch, merge patch and strategic merge patch, as pure functions."""
