"""Word spaces: words, vectors, distances. This room knows nothing of privacy."""
