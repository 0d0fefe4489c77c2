"""Strategies of Pods and of all kinds with a pod template.

The verbs find them through ``strategy_table.py``.
"""
