"""Views: JSON documents for the console's pages, built from API requests with the visitor's rights.

Called by ``tools/console/api.py``; a view works on a ``Client``.
"""
