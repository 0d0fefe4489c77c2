"""Typed decoding of built-in objects as Go does it: type errors, unknown fields, canonical values.

Called by ``server/rest/bodies.py`` and the strategies of built-in kinds
(``server/registry/kinds``). The decoder is driven by the tables of ``kube/facts``; the validation
rules are in ``kube/builtin_rules``.
"""
