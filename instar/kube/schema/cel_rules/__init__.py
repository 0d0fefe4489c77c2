"""``x-kubernetes-validations``: a schema's CEL rules, checked at CRD write, run on objects."""
