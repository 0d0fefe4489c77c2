"""Bootstrap objects: what every cluster and every namespace has, created at start and recreated."""
