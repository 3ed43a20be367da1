"""Worker: opens issues for code findings at the code host, exactly one for each, even if a step crashes."""
