"""Server-side apply and field ownership (``managedFields``), as generators that yield the
conversions they need.

``server/registry/verbs`` calls it for every write (``managers.py``) and for apply patches
(``applying.py``).
"""
