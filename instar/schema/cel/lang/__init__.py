"""The CEL language itself: text, types, values, evaluation. Knows no Kubernetes and no schema."""
