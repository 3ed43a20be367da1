"""The regions a project's consent instance can run in."""

REGIONS: dict[str, str] = {
    "eu-central": "Europe (Frankfurt)",
    "eu-west": "Europe (Ireland)",
    "us-east": "United States (Virginia)",
    "us-west": "United States (Oregon)",
    "ap-southeast": "Asia Pacific (Singapore)",
    "ap-northeast": "Asia Pacific (Tokyo)",
}
