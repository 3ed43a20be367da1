"""What every test stands on: an environment of its own, a clock it can set, a fresh table made from the template."""

import os

os.environ.update(
    TABLE_NAME="assent-test",
    SIGNING_SECRET="test-signing-secret-of-enough-length",
    PUBLIC_BASE_URL="https://api.assent.test",
    DASHBOARD_BASE_URL="https://dashboard.assent.test",
    AWS_REGION="eu-central-1",
    AWS_DEFAULT_REGION="eu-central-1",
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_EC2_METADATA_DISABLED="true",
    SCAN_PREPARATION_QUEUE_URL="https://queues.assent.test/scan-preparation",
    SCAN_PREPARATION_DEAD_LETTERS_URL="https://queues.assent.test/scan-preparation-dead-letters",
    SCAN_EXECUTION_QUEUE_URL="https://queues.assent.test/scan-execution",
    SCAN_EXECUTION_DEAD_LETTERS_URL="https://queues.assent.test/scan-execution-dead-letters",
    # No worker runs beside a test's request: it asks for the scan once and waits no time.
    SCAN_START_WAIT_SECONDS="0",
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="assent",
)
os.environ.pop("AWS_SESSION_TOKEN", None)
