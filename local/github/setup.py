"""Sets up a run of the stand-in: the App's key pair and secrets, and the demo repository."""

import secrets
from pathlib import Path

from local.checkout import write_private
from local.github.repositories import Repositories, stable_id

APP_ID = "1"
APP_SLUG = "assent-local"
CLIENT_ID = "Iv1.local"
PREFIX = "/github-stand-in"
"""Where the local server mounts it."""

FOLDER = "github"
"""Where a checkout keeps it, below .local/."""

DEMO_OWNER = "demo-shop"
DEMO_NAME = "storefront"
DEMO_BRANCH = "main"
DEMO_FILES = Path(__file__).with_name("demo")
_WEBHOOK_SECRET = "webhook-secret"  # noqa: S105 (a name)


def prepare(root: Path) -> None:
    """Creates what is missing in the folder and keeps the rest. Raises GitFailed if git isn't installed."""
    if not key_file(root).exists():
        write_key(key_file(root))
    if not client_secret_file(root).exists():
        write_private(client_secret_file(root), secrets.token_hex(20))
        write_private(root / _WEBHOOK_SECRET, secrets.token_hex(32))
    repositories = Repositories(root / "repositories")
    if repositories.find(DEMO_OWNER, DEMO_NAME) is None:
        repositories.create(DEMO_OWNER, DEMO_NAME, DEMO_FILES, DEMO_BRANCH)


def key_file(root: Path) -> Path:
    """Returns the path of the App's private key. The stand-in, which acts as GitHub, reads only its public half."""
    return root / "app-key.pem"


def client_secret_file(root: Path) -> Path:
    """Returns the path of the App's client secret."""
    return root / "client-secret"


def installation_id(owner: str) -> int:
    """Returns the id of the owner's installation of the App."""
    return stable_id(owner)


def webhook_secret(root: Path) -> str:
    """Returns the secret with which the App signs its webhooks."""
    return (root / _WEBHOOK_SECRET).read_text()


def function_variables(root: Path, base_url: str) -> dict[str, str]:
    """Returns the functions' environment variables for the code host."""
    return {
        "GITHUB_API_URL": f"{base_url}{PREFIX}/api/v3",
        "GITHUB_APP_ID": APP_ID,
        "GITHUB_APP_PRIVATE_KEY_FILE": str(key_file(root)),
        "GITHUB_APP_SLUG": APP_SLUG,
        "GITHUB_CLIENT_ID": CLIENT_ID,
        "GITHUB_CLIENT_SECRET_FILE": str(client_secret_file(root)),
        "GITHUB_WEBHOOK_SECRET": webhook_secret(root),
    }


def write_key(path: Path) -> None:
    """Writes a new private key, in the form in which GitHub hands out the keys of Apps."""
    # Needed once a checkout.
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode())
