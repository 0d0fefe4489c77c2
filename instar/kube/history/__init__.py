"""Object history: derives the write between two states of an object (author, time, changes).

Pure functions; the stores and the CLI pass in the states.
"""
