"""Signing in and out, and the client of the sign-in provider."""
