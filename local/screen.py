"""The screen that `make run` shows when the stack is ready: its address, and commands to paste."""

from typing import Any

from controlplane.platform.core.regions import REGIONS
from local.checkout import CREDENTIALS, ROOT

_TEMPLATE = """
assent is ready at {base_url}

  Pages         open {base_url}/ and sign in:
{people}
  Reference     open {base_url}/docs

  Health        curl -i {base_url}/health
  Regions       curl {base_url}/v1/regions

With the API key of the demo organization "{slug}":

  Who am I      curl {base_url}/v1/me -H 'Authorization: Bearer {key}'
  Projects      curl '{base_url}/v1/projects?limit=10' -H 'Authorization: Bearer {key}'
  New project   curl {base_url}/v1/projects -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"name": "My shop", "region": "{region}", "websites": ["https://shop.example.com"]}}'
  An error      curl -i {base_url}/v1/projects/prj_unknown -H 'Authorization: Bearer {key}'

As a person, the owner of "{slug}":

  Members       curl '{base_url}/v1/members?limit=10' -H 'Authorization: Bearer {token}'
  New API key   curl {base_url}/v1/api-keys -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
-d '{{"name": "Continuous integration"}}'
  Inbox         curl '{base_url}/v1/inbox?limit=10' -H 'Authorization: Bearer {token}'
  Scans         curl '{base_url}/v1/code-audit/scans?limit=10' -H 'Authorization: Bearer {token}'
  New scan      curl {base_url}/v1/code-audit/scans -H 'Authorization: Bearer {token}' \
-H 'Content-Type: application/json' -d '{{"repositoryId": "{repository}"}}'

The scanned repository, and the issues opened in it: {base_url}/github-stand-in/
Every email that would have been sent: {base_url}/mail-stand-in/
Every webhook delivery, and a receiver that can fail: {base_url}/webhook-receiver/
To connect it yourself: Organizations, Acme, Repositories, Connect GitHub.
More people, tokens and keys: {credentials}
Edit a file under functions/ or layers/, and the server restarts; the data stays. `make reset` deletes it.
Ctrl-C stops everything.
"""


def render(credentials: dict[str, Any]) -> str:
    """Renders the screen for the contents of credentials.json."""
    key = credentials["apiKeys"][0]
    organization = next(it for it in credentials["organizations"] if it["organizationId"] == key["organizationId"])
    owner = next(
        it for it in credentials["users"] if it["organizationId"] == key["organizationId"] and it["role"] == "owner"
    )
    width = max(len(it["email"]) for it in credentials["users"])
    people = [f"                {it['email']:{width}}  password {it['password']}" for it in credentials["users"]]
    return _TEMPLATE.format(
        people="\n".join(people),
        base_url=credentials["baseUrl"],
        slug=organization["slug"],
        key=key["key"],
        token=owner["accessToken"],
        region=next(iter(REGIONS)),
        repository=credentials["repositories"][0]["repositoryId"],
        credentials=CREDENTIALS.relative_to(ROOT, walk_up=True),
    )
