"""One verb, one file; what several verbs share stands beside them."""
