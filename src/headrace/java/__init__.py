"""What Java's classes mean: text of numbers, regular expressions, date patterns."""
