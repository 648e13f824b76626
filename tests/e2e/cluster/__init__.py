"""Runs on the real cluster, looked at as their users see them."""
