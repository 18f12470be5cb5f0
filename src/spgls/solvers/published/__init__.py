"""The published methods, a file each, and what only they need."""
