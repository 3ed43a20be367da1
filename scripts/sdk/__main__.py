"""Writes the generated modules of the SDK (make sdk): `.tools/sdk/bin/python -m scripts.sdk`."""

import shutil

from scripts.sdk import models, operations, sync


def main() -> None:
    # Without the modules whose source is gone. make goes by the models, so they are written last.
    shutil.rmtree(sync.SYNC, ignore_errors=True)
    sync.SYNC.mkdir()
    operations.OPERATIONS.write_text(operations.text())
    for path, text in (sync.texts() | models.texts()).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
