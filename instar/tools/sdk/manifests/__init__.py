"""Manifests in files: converted to another version, with everything else left as it was."""
