"""What jobs compute, one file a kind of job."""
