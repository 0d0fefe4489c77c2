"""Capturing a snapshot: from a cluster through its API, from a store, or from another snapshot."""
