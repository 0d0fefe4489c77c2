"""Subresources of pods over HTTP: binding, eviction, and requests that a kubelet answers."""
