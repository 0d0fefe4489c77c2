"""How a snapshot is taken: from a cluster through its API, from a store, from another world."""
