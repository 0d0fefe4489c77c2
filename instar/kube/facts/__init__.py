"""Data tables about Kubernetes' built-in kinds: names, numbers and types of release 1.36.

``scripts/make-facts`` writes the files under ``data``; they are read lazily, one group version at a
time. Used by the protobuf and typed codecs, OpenAPI and the registry. Data only, no rules.
"""
