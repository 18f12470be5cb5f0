"""The command line and its demonstration; only these print."""
