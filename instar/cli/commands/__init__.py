"""One module per ``instar`` command: its flags, and the call of the tool that does the work.

``cli/main.py`` imports the module of the command that is run, and no other.
"""
