"""Authorization: request attributes, authorizers, RBAC and impersonation, as pure functions."""
