"""What every cluster has from the start, and every namespace: made, and made again."""
