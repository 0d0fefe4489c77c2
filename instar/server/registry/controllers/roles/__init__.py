"""Default RBAC roles and bindings, and aggregated ClusterRoles."""
