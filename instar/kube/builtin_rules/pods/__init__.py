"""Validation rules of pods and pod templates; ``pod_spec.py`` is the entry point."""
