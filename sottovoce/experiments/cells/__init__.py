"""What cells compute, one file a kind of measurement; ``runner`` has them all."""
