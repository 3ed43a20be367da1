"""SES on this machine: it keeps every email, shows them on pages, and can make one bounce or be reported as spam."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from controlplane.platform.core import clock
from local import pages

PREFIX = "/mail-stand-in"
FOLDER = "emails"
SENDER = "no-reply@assent.example"
_KEPT = 200
# The buttons of an email, and SES's events in the form to which the template's rules reduce them.
_EVENTS = {
    "bounce": {"event": "bounced", "bounceType": "Permanent"},
    "complaint": {"event": "complained"},
}

type Report = Callable[[dict[str, Any]], None]


def function_variables(base_url: str) -> dict[str, str]:
    """Returns the functions' variables that make them send emails here."""
    return {"EMAIL_SENDER": SENDER, "AWS_ENDPOINT_URL_SESV2": f"{base_url}{PREFIX}"}


class Emails:
    """The emails in a folder, a file for each: what was sent, with the time, the addressees, and the subject."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, request: dict[str, Any]) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = sorted(self._folder.glob("*.json"))
        name = f"{int(kept[-1].stem) + 1 if kept else 1:08d}"
        content = {
            "at": clock.timestamp(),
            "to": ", ".join(request["Destination"]["ToAddresses"]),
            "subject": request["Content"]["Simple"]["Subject"]["Data"],
            "request": request,
        }
        (self._folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        for path in kept[: len(kept) + 1 - _KEPT]:
            path.unlink()
        return name

    def newest_first(self) -> list[tuple[str, dict[str, Any]]]:
        paths = sorted(self._folder.glob("*.json"), reverse=True)
        return [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in paths]

    def find(self, name: str) -> dict[str, Any] | None:
        return dict(self.newest_first()).get(name)


def create_app(emails: Emails, report: Report) -> FastAPI:
    """Returns the ASGI app. It can be mounted at any path.

    report: takes the message that the template's rules make of SES's event.
    """
    app = FastAPI(openapi_url=None)

    @app.post("/v2/email/outbound-emails")
    def send(sent: Annotated[dict[str, Any], Body()]) -> dict[str, str]:
        name = emails.add(sent)
        report(_message(sent, {"event": "sent"}))
        return {"MessageId": name}

    @app.get("/")
    def overview(request: Request) -> HTMLResponse:
        return pages.page(request, "emails.html", "Emails", emails=emails.newest_first())

    @app.get("/{name}")
    def show(request: Request, name: str) -> HTMLResponse:
        found = emails.find(name)
        if found is None:
            return pages.missing(request)
        simple = found["request"]["Content"]["Simple"]
        headers = [("From", found["request"]["FromEmailAddress"]), ("To", found["to"])]
        headers += [(it["Name"], it["Value"]) for it in simple.get("Headers", ())]
        text = simple["Body"]["Text"]["Data"]
        return pages.page(
            request, "email.html", found["subject"], name=name, headers=headers, events=_EVENTS, text=text
        )

    @app.get("/{name}/html")
    def show_html(request: Request, name: str) -> HTMLResponse:
        found = emails.find(name)
        if found is None:
            return pages.missing(request)
        # As in an email program, links open outside of the frame.
        body = found["request"]["Content"]["Simple"]["Body"]["Html"]["Data"]
        body = body.replace("<head>", '<head><base target="_top">', 1)
        return HTMLResponse(body, headers={"Content-Security-Policy": pages.STATIC})

    @app.post("/{name}/{event}")
    def react(name: str, event: str) -> RedirectResponse:
        found = emails.find(name)
        if found is not None and event in _EVENTS:
            report(_message(found["request"], _EVENTS[event]))
        return RedirectResponse(f"../{name}", 303)

    return app


def _message(sent: dict[str, Any], event: dict[str, str]) -> dict[str, Any]:
    tags = [tag["Value"] for tag in sent.get("EmailTags", ()) if tag["Name"] == "mail"]
    return {"version": 1, "kind": "mail-report", "mail": tags, **event}
