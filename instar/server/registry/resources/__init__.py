"""What is served: resources, how each version is served now, what a kind does differently."""
