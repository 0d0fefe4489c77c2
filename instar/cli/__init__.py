"""The ``instar`` command line: ``main.py`` dispatches, ``commands/`` has one module per command."""
