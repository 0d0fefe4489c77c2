"""Tokens that others sign: which issuers are believed, how their claims become a user, and their
keys, fetched and kept fresh. Loaded only where there is such an issuer."""
