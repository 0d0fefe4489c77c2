"""What several commands share: flags, exit codes, failures, output forms, progress bars."""
