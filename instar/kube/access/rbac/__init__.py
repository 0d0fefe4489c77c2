"""Role-based access control: policy rules, the index of roles and bindings, and the authorizer.

The server authorizes requests with it, and ``instar access`` explains decisions. Roles and bindings
are plain objects that the registry reads and passes in.
"""
