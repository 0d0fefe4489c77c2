"""Patch documents on plain values: JSON Patch, merge patch, strategic merge patch. Pure."""
