"""What is served: resources, how each version of one is served now, what its kind does differently."""
