"""What a CRD change does to admission: webhooks and policies that were written for the old one.

Pure: configurations come as documents, from files or a cluster (``sources.py``).
"""
