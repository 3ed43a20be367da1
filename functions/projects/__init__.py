"""Projects: their names, websites, and consent settings."""
