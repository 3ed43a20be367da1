"""HTTP for every function with routes: the app, checks of a request and its caller, and the response format."""
