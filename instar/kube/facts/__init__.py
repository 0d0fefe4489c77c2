"""Facts about Kubernetes' built-in kinds, as data: names, numbers and types of release 1.36.

``scripts/make-facts`` writes the files under ``data``; nothing is read before it is asked for, and
then only the group version in question. No rule lives here, and nothing here knows a server.
"""
