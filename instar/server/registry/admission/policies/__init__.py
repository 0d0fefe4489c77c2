"""Admission policies at work: which are bound, their parameters, and what they do to a request.

``plugin.py`` and ``definitions.py`` are with every server; the rest, and CEL with it, is loaded
when the first policy is bound.
"""
