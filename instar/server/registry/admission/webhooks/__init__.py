"""Admission webhooks: stored configurations, calls, and applying their answers."""
