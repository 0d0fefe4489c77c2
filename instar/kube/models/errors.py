"""What cannot be said: a model that no schema describes, or a place where modules disagree."""

from __future__ import annotations


class ModelError(Exception):
    """One line for whoever wrote the model."""
