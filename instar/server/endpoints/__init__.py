"""What is served besides objects: discovery, OpenAPI, health, metrics, instar's own pages."""
