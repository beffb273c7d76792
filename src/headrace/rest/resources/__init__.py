"""One module for each resource of the API, with handlers that turn requests into calls of the herder."""
