"""Patches on JSON values: JSON Patch, merge patch and strategic merge patch, as pure functions.

``server/registry/verbs/patch.py`` applies the patches of requests, admission those of webhooks and
policies.
"""
