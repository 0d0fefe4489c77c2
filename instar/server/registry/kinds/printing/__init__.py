"""Table columns of the built-in kinds (``kubectl get``), one module per API group family.

``printer.py`` calls them for Table responses. Custom resources define their columns in the CRD.
"""
