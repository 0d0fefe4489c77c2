"""Validation rules of pods and pod templates; ``pod_spec.py`` is the entry point.

Called by ``server/registry/kinds/workloads`` and by the rules of controllers and jobs.
"""
