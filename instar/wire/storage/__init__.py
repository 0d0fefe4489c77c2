"""Storage backends: bytes under keys with one global revision, as in etcd.

``store.py`` is the contract of every backend, ``open.py`` picks a backend by URL, and
``watchcache/`` keeps the copy in memory from which the server answers reads.
"""
