"""Encryption at rest: encrypts values on write and decrypts them once, on entry to the cache.

Uses kube-apiserver's byte formats, so that both can share an etcd.
``server/lifecycle/encryption_setup.py`` and the storage commands import it only if an
``EncryptionConfiguration`` is given.
"""
