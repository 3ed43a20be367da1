"""Code that needs neither HTTP nor the table: settings, IDs, errors, tokens, time, logs. Imports nothing of ours."""
