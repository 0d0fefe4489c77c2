"""Conversion of objects between API versions: strategy None, webhook, or in process.

``factory.py`` builds a CRD's converter; ``server/registry/stored/codec.py`` calls it.
"""
