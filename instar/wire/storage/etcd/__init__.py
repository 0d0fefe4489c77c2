"""The ``Store`` contract on an etcd cluster.

``wire/storage/open.py`` opens it for ``etcd:`` URLs.
"""
