"""One file for each resource of the API: its handlers, which turn requests into calls of the herder."""
