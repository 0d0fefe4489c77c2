"""Validation rules of CustomResourceDefinitions."""
