"""Validation rules of pods and pod templates."""
