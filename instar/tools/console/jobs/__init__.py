"""Jobs: long work on user input, run in a process with time and memory limits.

The review and check views start jobs through ``supervisor.py``.
"""
