"""Where a container finds this machine."""

import pytest

from local.sam import gateway_of


class TestGateway:
    def test_is_what_docker_says(self):
        assert gateway_of([{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.9"}]) == "172.17.0.9"

    @pytest.mark.parametrize("network", [{"Subnet": "172.17.0.0/16"}, {"Subnet": "172.17.0.0/16", "Gateway": ""}])
    def test_is_the_first_address_where_docker_does_not_say(self, network: dict[str, str]):
        assert gateway_of([network]) == "172.17.0.1"

    def test_is_of_the_network_that_has_ipv4(self):
        networks = [{"Subnet": "fd00::/64", "Gateway": "fd00::1"}, {"Subnet": "10.1.0.0/24", "Gateway": "10.1.0.1"}]
        assert gateway_of(networks) == "10.1.0.1"

    def test_must_be_there(self, capsys: pytest.CaptureFixture[str]):
        with pytest.raises(SystemExit):
            gateway_of([])
        assert "IPv4" in capsys.readouterr().err
