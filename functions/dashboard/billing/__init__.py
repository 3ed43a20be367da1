"""The page of the plan and the credits."""
