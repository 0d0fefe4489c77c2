"""The roles and bindings every cluster has, and roles that are made of others."""
