"""What every other package may use: types, checks of input, the machine, plain vectors."""
