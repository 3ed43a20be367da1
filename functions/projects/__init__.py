"""Projects: what they are called, where their websites run, and how they ask for consent."""
