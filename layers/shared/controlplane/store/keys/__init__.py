"""Keys of the single table. Keys are built only in this package, from ids whose format was validated.

Each builder has an example item above it. Other modules import the package, and call `keys.project(…)`.
"""
# ruff: noqa: F403 (the package is used as one module)

from controlplane.store.keys.findings import *
from controlplane.store.keys.key import *
from controlplane.store.keys.mail import *
from controlplane.store.keys.operations import *
from controlplane.store.keys.organizations import *
from controlplane.store.keys.people import *
