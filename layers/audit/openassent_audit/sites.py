"""Which hosts belong to one website: those of one registrable domain, by the public suffix list."""

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=4_096)
def site_of(host: str) -> str:
    """Returns the registrable domain of a host, or the host itself if it has none."""
    name = host.lower().strip(".")
    return str(_suffixes().privatesuffix(name) or name)


def same_site(one: str, other: str) -> bool:
    return site_of(one) == site_of(other)
