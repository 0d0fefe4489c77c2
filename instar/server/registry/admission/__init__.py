"""What may still change or refuse a write after it was prepared and before it is stored."""
