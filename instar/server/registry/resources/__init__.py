"""What is served: the catalog of resources, how each version is served, and the strategy of its
kind."""
