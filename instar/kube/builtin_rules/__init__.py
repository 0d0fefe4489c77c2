"""Validation rules of built-in kinds, in upstream's order and with its messages.

Called by ``server/registry/kinds``. Pure functions from decoded and defaulted objects to
``FieldError`` lists.
"""
