"""Rewrites stored objects at the storage version of their CRD, proven object by object."""
