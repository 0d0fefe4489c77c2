"""Upgrades the CRDs of a cluster to a release: review, apply, migrate, verify, or roll back.

``instar upgrade`` calls ``upgrade.py``. Built on the reviewer and the migrator;
``cli/commands/upgrade.py`` has the flags and prints the output.
"""
