"""Admission policies: bindings, parameters and evaluation of ValidatingAdmissionPolicy and
MutatingAdmissionPolicy.

``plugin.py`` and ``definitions.py`` are always imported; the other modules, and CEL with them, are
imported when the first policy is bound.
"""
