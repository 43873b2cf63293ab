"""What is known of English itself: parts of speech, and how the meanings of words are related."""
