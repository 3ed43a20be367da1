"""`assent profile`: which service and account a command uses."""

from typing import Annotated

import typer

from openassent_cli import profiles
from openassent_cli.commands.shared import Group
from openassent_cli.invocation import invocation
from openassent_cli.output import done, print_json, show_list

app = Group()


@app.add("list")
def list_profiles() -> None:
    """List the profiles."""
    current = profiles.current()
    rows = [
        {"name": name, "baseUrl": it.base_url, "organization": it.organization, "current": name == current}
        for name, it in profiles.all_profiles().items()
    ]
    if invocation().json:
        print_json(rows)
        return
    show_list(
        rows,
        {
            "": lambda it: "*" if it["current"] else "",
            "NAME": lambda it: it["name"],
            "SERVICE": lambda it: it["baseUrl"],
            "ORGANIZATION": lambda it: it["organization"],
        },
        empty="There are no profiles. Run `assent login`.",
    )


@app.add("use")
def use(name: Annotated[str, typer.Argument(help="The profile's name.")]) -> None:
    """Use a profile from now on."""
    profiles.use(profiles.checked_name(name))
    done({"current": name}, f"Commands use the profile {name} now.")
