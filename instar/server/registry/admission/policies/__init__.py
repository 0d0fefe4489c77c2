"""Admission policies: bindings, parameters and evaluation of ValidatingAdmissionPolicy and
MutatingAdmissionPolicy.

``plugin.py`` and ``definitions.py`` are always imported; the rest, and CEL with it, when the first
policy is bound.
"""
