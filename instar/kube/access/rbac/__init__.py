"""Role-based access control: policy rules, the index of roles and bindings, and the authorizer.

Roles and bindings are plain objects that the registry reads and passes in.
"""
