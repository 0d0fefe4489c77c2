"""Cluster snapshots: captured from a cluster or a store, read in many forms, served again."""
