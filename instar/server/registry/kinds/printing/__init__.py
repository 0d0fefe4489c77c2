"""Table columns of the built-in kinds (``kubectl get``), one module per API group family.

Custom resources define theirs in the CRD.
"""
