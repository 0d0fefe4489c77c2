"""Search for witnesses: example objects, made from schemas, that prove a finding of a review.

``reviewing.py`` passes ``search.py`` to the engine. Each witness is confirmed by simulating a
server with the old and with the new CRD.
"""
