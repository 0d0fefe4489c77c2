"""CEL rules of schemas (``x-kubernetes-validations``): checked when a CRD is written, run on
objects."""
