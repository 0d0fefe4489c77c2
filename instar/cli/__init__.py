"""The ``instar`` command: ``main.py`` finds the subcommand, ``commands/`` holds one module each."""
