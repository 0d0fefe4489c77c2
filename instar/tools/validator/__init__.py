"""``instar validate``: validates manifests offline with an embedded server.

Called by ``cli/commands/validate.py``; the embedded server applies the validation.
"""
