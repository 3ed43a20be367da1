"""Worker: sends an organization's members, and the people that it invites, the emails that they want."""
