"""Objects in Kubernetes' protobuf form, both ways: bytes to plain values and back.

Driven by the message tables of ``instar.kube.facts``: no kind is known here by name, only the few
types
whose JSON form is code in Go. ``envelope`` is what others call; nothing here knows HTTP.
"""
