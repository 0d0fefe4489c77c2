"""Tokens of other issuers (OIDC): configuration, mapping of claims to users, refreshed keys.

``access/oidc_setup.py`` imports it only if an issuer is configured.
"""
