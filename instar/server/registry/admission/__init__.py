"""Admission: plugins, policies and webhooks that may change or reject a write before it is stored.

The write verbs call the chain that ``server/lifecycle/admission_setup.py`` composes.
"""
