"""``instar convert``: converts manifests in files to another version and leaves the rest of the
text unchanged.

Called by ``cli/commands/convert.py``.
"""
