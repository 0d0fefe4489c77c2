"""Admission rules as pure functions: which requests a webhook or policy matches, and what it
receives.

Rules, selectors, match conditions, the AdmissionRequest document and the evaluation of CEL
expressions. ``server/registry/admission`` calls the webhooks and policies and supplies the objects
in each version.
"""
