"""Benchmarks of instar: micro-benchmarks, load over HTTP, and baselines of a bare server.

``python -m bench --help``. Absolute figures from a shared machine mean little; compare the ratios
of one run.
"""
