"""``instar convert``: converts manifests in files to another version and keeps everything else.

Called by ``cli/commands/convert.py``.
"""
