"""Writes the generated modules of the SDK (make sdk): `.tools/sdk/bin/python -m scripts.sdk`."""

import shutil

from scripts.sdk import models, operations


def main() -> None:
    # Without the modules whose source is gone. make goes by the models, so they are written last.
    shutil.rmtree(models.SYNC, ignore_errors=True)
    models.SYNC.mkdir()
    operations.OPERATIONS.write_text(operations.text())
    for path, text in (models.synchronous_texts() | models.texts()).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
