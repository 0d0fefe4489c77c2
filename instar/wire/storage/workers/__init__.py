"""One store for several processes: sockets, shared memory, shared revisions."""
