"""One module per ``instar`` command: its flags, and the call of the tool that does the work."""
