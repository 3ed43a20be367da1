"""What a crash left half done, finished every minute."""
