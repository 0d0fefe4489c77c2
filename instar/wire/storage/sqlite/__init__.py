"""The ``Store`` contract on one SQLite file.

``wire/storage/open.py`` opens it for ``sqlite:`` URLs.
"""
