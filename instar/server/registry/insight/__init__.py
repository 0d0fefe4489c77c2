"""What the server knows about its objects and callers beyond the Kubernetes API."""
