"""What is special about a built-in kind: schema, columns and strategy of one kind together."""
