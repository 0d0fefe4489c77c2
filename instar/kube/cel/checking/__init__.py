"""CEL type checking and cost estimation of a parsed expression."""
