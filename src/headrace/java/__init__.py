"""The behaviour of Java's classes: text of numbers, regular expressions, date patterns."""
