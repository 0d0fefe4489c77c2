"""One store for several processes (``instar serve --workers``).

The first process owns the store and serves it over a socket; values and the current revision are in
shared memory.
"""
