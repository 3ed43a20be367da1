"""Scheduled function: every minute, finishes work that crashed processes left incomplete."""
