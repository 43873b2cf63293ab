"""The local app: a page and a small service on the person's own machine."""
