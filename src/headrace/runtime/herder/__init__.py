"""What a worker can be asked to do, and what it answers: all that REST and the command line know of it."""
