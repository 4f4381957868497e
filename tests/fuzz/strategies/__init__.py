"""What is passed to calshift, drawn by numpy generators."""
