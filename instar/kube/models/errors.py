"""ModelError: a model that cannot be expressed as a schema, or models that contradict each other.

Raised while reading classes; ``instar crd`` prints it.
"""

from __future__ import annotations


class ModelError(Exception):
    """One-line message for the author of the model."""
