"""Opens issues for code findings at the code host: exactly one for each, whatever dies at whatever step."""
