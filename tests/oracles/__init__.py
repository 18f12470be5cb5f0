"""High-precision oracles that share no code with the library, and the problems they are asked."""
