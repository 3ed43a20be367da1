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
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="assent",
)
os.environ.pop("AWS_SESSION_TOKEN", None)
