"""HTTP for every function with routes: the app, the reader of requests, the format of responses. Imports `table`."""
