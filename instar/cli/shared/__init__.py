"""Parts shared by several commands: flags, exit codes, failures, output formats, progress bars.

Imported by the modules of ``cli/commands`` and ``cli/serving``.
"""
