"""Tokens of other issuers (OIDC): configuration, mapping of claims to users, refreshed keys.

Imported only where an issuer is configured.
"""
