"""Code that needs neither HTTP nor the table: settings, ids, errors, tokens, time, and logs."""
