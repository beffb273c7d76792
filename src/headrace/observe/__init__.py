"""What happens, as events; logs are one of their listeners."""
