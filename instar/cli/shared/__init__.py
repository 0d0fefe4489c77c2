"""Parts shared by several commands: flags, exit codes, failures, output formats, progress bars."""
