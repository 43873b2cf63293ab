"""What cells compute, one file a kind of cell; ``runner`` has them all."""
