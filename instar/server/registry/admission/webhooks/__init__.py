"""Admission webhooks: which are configured, calling them, what their answers do."""
