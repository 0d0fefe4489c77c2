"""The ``Store`` contract on a PostgreSQL database.

``wire/storage/open.py`` opens it for ``postgresql:`` URLs.
"""
