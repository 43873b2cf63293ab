"""What a model that learns from, or is asked with, obfuscated texts still gets right."""
