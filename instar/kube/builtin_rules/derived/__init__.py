"""What controllers derive from built-in objects: numbers, conditions and other objects. Pure."""
