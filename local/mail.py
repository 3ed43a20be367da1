"""SES on this machine: it keeps every email, shows them on pages, and can make one bounce or be reported as spam."""

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from controlplane.platform.core import clock

PREFIX = "/mail-stand-in"
FOLDER = "emails"
SENDER = "no-reply@assent.example"
_KEPT = 200
# The buttons of an email, and SES's events in the form to which the template's rules reduce them.
_EVENTS = {
    "bounce": {"event": "bounced", "bounceType": "Permanent"},
    "complaint": {"event": "complained"},
}
# The email is in a frame that runs and loads nothing.
_SECURITY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'"}
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .4rem .6rem; border-bottom: 1px solid #8886; overflow-wrap: anywhere }
iframe { box-sizing: border-box; width: 100%; height: 34rem; border: 1px solid #8886; border-radius: .5rem }
h1, pre { white-space: pre-wrap; overflow-wrap: anywhere }
form { display: inline } .quiet { opacity: .8 }
@media (prefers-color-scheme: dark) { body { background: #121212; color: #eee } a { color: #8ec1ff } }
"""

type Report = Callable[[dict[str, Any]], None]


def function_variables(base_url: str) -> dict[str, str]:
    """Returns the functions' variables that make them send emails here."""
    return {"EMAIL_SENDER": SENDER, "AWS_ENDPOINT_URL_SESV2": f"{base_url}{PREFIX}"}


class Emails:
    """The emails in a folder, a file for each, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, request: dict[str, Any]) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = self._paths()
        number = int(kept[-1].stem) + 1 if kept else 1
        content = {"at": clock.timestamp(), "request": request}
        (self._folder / f"{number:08d}.json").write_text(json.dumps(content), encoding="utf-8")
        for path in kept[: len(kept) + 1 - _KEPT]:
            path.unlink()
        return f"{number:08d}"

    def newest_first(self) -> list[tuple[str, dict[str, Any]]]:
        return [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in reversed(self._paths())]

    def find(self, name: str) -> dict[str, Any] | None:
        return dict(self.newest_first()).get(name)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))


def create_app(emails: Emails, report: Report) -> Starlette:
    """Returns the ASGI app. It can be mounted at any path.

    report: takes the message that the template's rules make of SES's event.
    """

    async def send(request: Request) -> Response:
        sent = await request.json()
        name = emails.add(sent)
        report(_message(sent, {"event": "sent"}))
        return JSONResponse({"MessageId": name})

    def overview(_request: Request) -> Response:
        rows = "".join(
            f'<tr><td class=quiet>{found["at"][:19]}<td>{_escaped(_to(found))}<td><a href="{name}">'
            f"{_escaped(_simple(found)['Subject']['Data'])}</a>"
            for name, found in emails.newest_first()
        )
        head = "<tr><th>Sent (UTC)<th>To<th>Subject"
        return _page("Emails", f"<table>{head}{rows}</table>" if rows else "<p class=quiet>None yet.</p>")

    def show(request: Request) -> Response:
        found = emails.find(request.path_params["name"])
        if found is None:
            return _page("There is no such email", "", 404)
        simple = _simple(found)
        headers = "".join(
            f"<tr><th>{_escaped(header)}<td>{_escaped(value)}"
            for header, value in (
                ("From", found["request"]["FromEmailAddress"]),
                ("To", _to(found)),
                *((it["Name"], it["Value"]) for it in simple.get("Headers", ())),
            )
        )
        name = request.path_params["name"]
        buttons = " ".join(
            f'<form method=post action="{name}/{event}"><button>Make it a {event}</button></form>' for event in _EVENTS
        )
        sandbox = "allow-popups allow-top-navigation-by-user-activation"
        frame = f'<iframe sandbox="{sandbox}" title="HTML" src="{name}/html"></iframe>'
        text = f"<h2>Plain text</h2><pre>{_escaped(simple['Body']['Text']['Data'])}</pre>"
        back = '<p><a href="./">All emails</a></p>'
        return _page(
            _escaped(simple["Subject"]["Data"]), f"{back}<table>{headers}</table><p>{buttons}</p>{frame}{text}"
        )

    def show_html(request: Request) -> Response:
        found = emails.find(request.path_params["name"])
        if found is None:
            return _page("There is no such email", "", 404)
        # As in an email program, links open outside of the frame.
        body = _simple(found)["Body"]["Html"]["Data"].replace("<head>", '<head><base target="_top">', 1)
        return HTMLResponse(body, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"})

    async def react(request: Request) -> Response:
        found, event = emails.find(request.path_params["name"]), _EVENTS.get(request.path_params["event"])
        await request.body()
        if found is not None and event is not None:
            report(_message(found["request"], event))
        return RedirectResponse(f"../{request.path_params['name']}", 303)

    return Starlette(
        routes=[
            Route("/v2/email/outbound-emails", send, methods=["POST"]),
            Route("/", overview),
            Route("/{name:str}", show),
            Route("/{name:str}/html", show_html),
            Route("/{name:str}/{event:str}", react, methods=["POST"]),
        ]
    )


def _message(sent: dict[str, Any], event: dict[str, str]) -> dict[str, Any]:
    tags = [tag["Value"] for tag in sent.get("EmailTags", ()) if tag["Name"] == "mail"]
    return {"version": 1, "kind": "mail-report", "mail": tags, **event}


def _simple(found: dict[str, Any]) -> dict[str, Any]:
    simple: dict[str, Any] = found["request"]["Content"]["Simple"]
    return simple


def _to(found: dict[str, Any]) -> str:
    return ", ".join(found["request"]["Destination"]["ToAddresses"])


def _escaped(text: str) -> str:
    return html.escape(text)


def _page(title: str, body: str, status: int = 200) -> Response:
    head = f"<meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    return HTMLResponse(f"<!doctype html><html lang=en>{head}<h1>{title}</h1>{body}", status, _SECURITY)
