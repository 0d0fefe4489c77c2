"""Role-based access control: rules, who they apply to, and what a grant may hold. Pure.

Roles and bindings come in as plain objects; who reads them, and when, is the registry's.
"""
