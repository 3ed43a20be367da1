"""What an organization pays for: its plan, its credits, and what the plan allows."""
