"""What two states of an object say about the write between them: who, when, what.

Pure: stores, servers and terminals are elsewhere.
"""
