"""API evolution for Kubernetes custom resources."""

__version__ = "0.2.0"
