"""Endpoints equal those of botocore's rules, and what the client can't do is refused."""

import pytest
from botocore.endpoint_provider import EndpointProvider
from botocore.loaders import Loader

from awsclient import endpoints
from awsclient.endpoints import Endpoint, Proxy, find_endpoint
from awsclient.errors import Misconfigured

SERVICES = ("dynamodb", "sqs")


class TestRegions:
    @pytest.mark.parametrize("service", SERVICES)
    def test_the_endpoint_of_every_region_equals_botocores(self, service, monkeypatch):
        loader = Loader()
        partitions = loader.load_data("partitions")
        provider = EndpointProvider(loader.load_service_model(service, "endpoint-rule-set-1"), partitions)
        compared = 0
        for partition in partitions["partitions"]:
            for region in [*partition["regions"], "eu-nowhere-9"]:
                if region.endswith("-global"):
                    continue  # no region, but how services without regions are signed
                for fips, dual_stack in ((False, False), (True, False), (False, True), (True, True)):
                    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
                    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", str(fips).lower())
                    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", str(dual_stack).lower())
                    theirs = provider.resolve_endpoint(Region=region, UseFIPS=fips, UseDualStack=dual_stack)
                    ours = find_endpoint(service)
                    assert f"https://{ours.host}" == theirs.url
                    assert (ours.is_tls, ours.port, ours.path, ours.host_header) == (True, 443, "/", ours.host)
                    compared += 1
        assert compared > 150

    def test_the_region_comes_from_lambdas_variables(self, monkeypatch):
        monkeypatch.setenv("AWS_REGION", "eu-west-1")
        monkeypatch.delenv("AWS_DEFAULT_REGION")
        assert endpoints.region() == "eu-west-1"
        for wrong in ("", "evil.example/", "a b"):
            monkeypatch.setenv("AWS_REGION", wrong)
            with pytest.raises(Misconfigured):
                endpoints.region()


class TestEnvironment:
    def test_a_services_own_address_precedes_the_common_one(self, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "https://sqs.example.com/prefix")
        assert find_endpoint("dynamodb") == Endpoint(False, "127.0.0.1", 4566, "/")
        assert find_endpoint("sqs") == Endpoint(True, "sqs.example.com", 443, "/prefix")
        assert find_endpoint("dynamodb").host_header == "127.0.0.1:4566"
        assert find_endpoint("sqs", "http://[::1]:80/").host_header == "[::1]"
        for name, value in (("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), ("AWS_ENDPOINT_URL_SQS", "")):
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                patch.setenv("AWS_ENDPOINT_URL", "" if value == "" else "http://127.0.0.1:4566")
                assert find_endpoint("sqs").host == "sqs.eu-central-1.amazonaws.com"

    def test_what_the_client_cant_do_is_refused(self, monkeypatch):
        for variables in (
            {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_ENDPOINT_URL": "https://example.com"},
            {"AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_ENDPOINT_URL_DYNAMODB": "https://example.com"},
            {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"},
            {"AWS_ENDPOINT_URL": "ftp://example.com"},
            {"AWS_ENDPOINT_URL": "https://example.com:port"},
            {"AWS_ENDPOINT_URL": "https://user:secret@example.com"},
            {"AWS_ENDPOINT_URL": "https:///path"},
            {"AWS_ENDPOINT_URL": "https://example.com?secret=1"},
            {"HTTPS_PROXY": "http://:3128"},
            {"HTTPS_PROXY": "https://proxy.example.com"},
            {"HTTPS_PROXY": "socks5://proxy.example.com"},
        ):
            with monkeypatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                with pytest.raises(Misconfigured) as raised:
                    find_endpoint("dynamodb")
                assert "secret" not in str(raised.value)

    def test_a_proxy_is_used_for_tls_unless_the_host_is_exempt(self, monkeypatch):
        monkeypatch.setenv("HTTPS_PROXY", "http://ada:se%63ret@proxy.example.com:3128")
        assert find_endpoint("dynamodb").proxy == Proxy("proxy.example.com", 3128, "ada:secret")
        assert find_endpoint("dynamodb", "http://127.0.0.1:1").proxy is None
        for exempt in ("*", "amazonaws.com", ".amazonaws.com, other", "dynamodb.eu-central-1.amazonaws.com"):
            monkeypatch.setenv("NO_PROXY", exempt)
            assert find_endpoint("dynamodb").proxy is None
        monkeypatch.setenv("NO_PROXY", "naws.com,example.com")
        assert find_endpoint("dynamodb").proxy is not None
        monkeypatch.setenv("HTTPS_PROXY", "proxy.example.com")
        assert find_endpoint("dynamodb").proxy == Proxy("proxy.example.com", 80)
        monkeypatch.setenv("https_proxy", "own.example.com")
        assert find_endpoint("dynamodb").proxy == Proxy("own.example.com", 80)
        monkeypatch.setenv("no_proxy", "amazonaws.com")
        assert find_endpoint("dynamodb").proxy is None
