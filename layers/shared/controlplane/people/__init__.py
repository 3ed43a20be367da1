"""Users, their identities at issuers, the sign-in of devices, tokens, and sessions. Imports no other subject."""
