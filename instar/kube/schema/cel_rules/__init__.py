"""CEL rules of schemas (``x-kubernetes-validations``): checked when a CRD is written, run on
objects.

``kube/crds/validation`` calls ``check.py``; ``pipeline.py`` runs the rules on each write.
"""
