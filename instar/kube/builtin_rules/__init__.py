"""What values of built-in kinds must look like, in upstream's order and words. Pure functions from
plain values to ``FieldError`` lists; types are right already, defaults are set."""
