"""Respecting the limits of other people's APIs."""
