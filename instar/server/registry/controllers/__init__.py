"""Controllers: reconcile CRDs, namespaces, migrations, quotas, roles and garbage after writes.

Created by ``server/lifecycle/controller_setup.py``. Each has a work queue (``queue.py``) and, where
only one replica may act, waits for leadership (``leadership.py``).
"""
