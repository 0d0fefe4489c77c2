"""Admission webhooks: stored configurations, calls, and applying their answers.

The admission chain calls ``mutating.py`` and ``validating.py``; ``wire/webhooks`` does the HTTP
calls.
"""
