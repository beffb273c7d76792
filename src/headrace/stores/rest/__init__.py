"""What the stores that are spoken to by REST have in common."""
