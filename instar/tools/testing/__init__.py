"""Test helpers for other projects: a server in a thread, webhooks, fixtures, converter laws.

``instar.testing`` publishes what test suites import.
"""
