"""The door for language-model agents: tools that search and release text in a low voice."""
