"""The pages of projects with their consent instances, websites, and vendors."""
