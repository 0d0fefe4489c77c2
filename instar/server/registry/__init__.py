"""Verbs on objects: owns the order of steps between a decoded request and the store.

``server/rest`` calls the verbs with decoded objects and encodes their results; headers and media
types are handled there. The registry calls ``kube`` (rules), ``wire/conversion`` and
``wire/storage``.
"""
