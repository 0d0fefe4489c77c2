"""What tables show of the built-in kinds, a module per family; custom resources say it in CRDs."""
