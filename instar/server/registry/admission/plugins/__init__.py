"""Built-in admission plugins, under upstream's names."""
