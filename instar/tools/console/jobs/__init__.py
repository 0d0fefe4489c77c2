"""Jobs: reviews and checks of user input, run in a child process with time and memory limits.

The review and check views start jobs through ``supervisor.py``.
"""
