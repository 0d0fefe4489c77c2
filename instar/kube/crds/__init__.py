"""CustomResourceDefinitions: reading them, validating them, and computing their status."""
