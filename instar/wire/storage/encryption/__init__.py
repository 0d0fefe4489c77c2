"""Values at rest: sealed on their way to a store, opened once on their way into the cache.

In kube-apiserver's byte formats, so that one of them on the same etcd reads what is written here
and the other way round. Loaded only by a server that was given a configuration.
"""
