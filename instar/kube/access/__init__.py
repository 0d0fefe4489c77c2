"""Authorization: request attributes, authorizers, RBAC and impersonation, as pure functions.

``server/app.py`` and ``server/access`` call it for every request; ``instar access`` explains
decisions with it.
"""
