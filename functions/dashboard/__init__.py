"""The web pages: sign-in, devices, invitations, sessions, organizations, and projects."""
