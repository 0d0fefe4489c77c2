"""``instar validate``: validates manifests offline with an embedded server."""
