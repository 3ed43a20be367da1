"""The route that receives the secrets which GitHub's secret scanning found in public."""

import json
from typing import Annotated

from fastapi import Response

from api_keys import leaks
from controlplane.code_host.secret_scanning import LeakReport, SignedBySecretScanning
from controlplane.platform.http.app import ControlRouter

router = ControlRouter(tags=["API keys"], include_in_schema=False)


@router.post("/v1/github/leaked-keys", operation_id="receiveLeakReport")
async def receive_leak_report(report: Annotated[LeakReport, SignedBySecretScanning()]) -> Response:
    """Revokes the keys and tokens of a report, and says which of the secrets were some. The format is GitHub's."""
    return Response(json.dumps(leaks.revoke_reported(report.body)), media_type="application/json")
