"""One store for several processes (``instar serve --workers``).

``cli/serving/workers.py`` starts the server side; a worker opens its store by a ``peer:`` URL. The
first process owns the store and serves it over a socket; values and the current revision are in
shared memory.
"""
