"""What names of files tell, and what is told of them in each record."""
