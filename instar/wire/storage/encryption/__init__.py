"""Encryption at rest: encrypts values on write and decrypts them once, on entry to the cache.

Uses kube-apiserver's byte formats, so that both can share an etcd. Imported only when an
``EncryptionConfiguration`` is given.
"""
