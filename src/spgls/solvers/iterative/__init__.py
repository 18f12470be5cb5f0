"""What the iterative solvers share: one loop, one end, the hard case."""
