"""Measurements of instar: micro-benchmarks, load over HTTP, and the floor below which nothing goes.

``python -m bench --help``. Figures from a shared machine mean little by themselves: compare the
ratios of one sitting.
"""
