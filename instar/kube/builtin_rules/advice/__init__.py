"""Warnings about objects of built-in kinds that are valid and probably a mistake, with upstream's
texts. ``by_kind.py`` has a function for each kind; the strategies of ``server/registry/kinds`` send
what it returns. Warnings never decide whether an object is accepted."""
