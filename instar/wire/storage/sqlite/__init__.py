"""The ``Store`` contract on one SQLite file."""
