"""Default RBAC roles and bindings, and aggregated ClusterRoles.

``server/lifecycle/controller_setup.py`` creates ``RoleController``.
"""
