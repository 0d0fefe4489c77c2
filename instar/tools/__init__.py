"""Tools for the life cycle of API versions (review, convert, migrate, upgrade, restore and others),
one package each.

Every tool is a library first; ``instar.cli`` makes a command of it, and ``tools/console`` has pages
for some of them.
"""
