"""The exact search on a GPU: products of 16-bit floats, and a proof that they miss nothing."""
