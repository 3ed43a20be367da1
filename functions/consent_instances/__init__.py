"""The public configuration of a consent instance, which the banner on its websites reads."""
