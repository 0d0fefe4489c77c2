"""Typed decoding of built-in objects as Go does it: type errors, unknown fields, canonical values.

Driven by the tables of ``kube/facts``; the validation rules are in ``kube/builtin_rules``.
"""
