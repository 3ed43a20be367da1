"""Chromium as the service's layer brings it: compressed, and unpacked once per execution environment of Lambda.

It is that of @sparticuz/chromium (npm), which is built for Lambda's Linux. Playwright's own runtime unpacks it.
"""

import shutil
import subprocess  # nosec B404
import tarfile
from pathlib import Path
from typing import Final

import playwright

from openassent_audit.browser import Chromium

# The build puts the files of the npm package here.
PACKED: Final = Path(__file__).with_name("chromium")
_RUNTIME: Final = Path(playwright.__file__).with_name("driver") / "node"
_SECONDS: Final = 60
_UNPACK: Final = """
const [from, to] = process.argv.slice(1), fs = require("fs"), zlib = require("zlib");
Promise.all(fs.readdirSync(from).filter((it) => it.endsWith(".br")).map((it) => require("stream/promises").pipeline(
  fs.createReadStream(`${from}/${it}`), zlib.createBrotliDecompress({chunkSize: 1 << 20}),
  fs.createWriteStream(`${to}/${it.slice(0, -3)}`, {mode: 0o700}))));
"""
# Lambda has no user namespaces for the sandbox, no GPU, and refuses the calls with which a zygote starts processes.
_FLAGS: Final = ("--no-zygote", "--in-process-gpu", "--disable-software-rasterizer")
_FONTS: Final = "<fontconfig><dir>{0}/fonts</dir><cachedir>{0}/fonts-cache</cachedir></fontconfig>"


def unpack(folder: Path, packed: Path = PACKED) -> Chromium | None:
    """Unpacks Chromium into a folder, unless an earlier call did. Returns None if the layer was built without it."""
    if not packed.is_dir():
        return None
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        command = [str(_RUNTIME), "-e", _UNPACK, str(packed), str(partial)]
        subprocess.run(command, check=True, env={}, timeout=_SECONDS)  # nosec B603  # noqa: S603 (of this layer)
        for archive in partial.glob("*.tar"):
            with tarfile.open(archive) as opened:
                opened.extractall(partial, filter="data")
            archive.unlink()
        (partial / "fonts.conf").write_text(_FONTS.format(folder))
        partial.replace(folder)
    found = {"LD_LIBRARY_PATH": f"{folder}/lib", "FONTCONFIG_PATH": str(folder)}
    return Chromium(f"{folder}/chromium", _FLAGS, found)
