"""Takes the inventory of a repository: languages, frameworks, package managers, and vendors.

`listing` sees every file of the archive by name, while it is unpacked. `manifests` parses a package manifest, inside
the sandbox. `stocktaking` combines both with what the analysis saw loaded. `technologies` has the facts.
"""
