"""The four ways to write a class down, one file each; ``writing.py`` is what they share."""
