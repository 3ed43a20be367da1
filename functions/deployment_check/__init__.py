"""Pre-traffic hook of CodeDeploy: checks a new version of a function before it gets any traffic."""
