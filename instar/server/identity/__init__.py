"""Identity of clients by their credentials: tokens of this and other issuers, certificates.

``server/access`` calls it. Objects are looked up and keys are fetched by functions that are passed
in; permissions are decided in ``kube/access``.
"""
