"""The places of inputs that a manifest can have: everybody finds the files there, and no secret is in them."""

import re
from collections.abc import Sequence

from c4pipe.errors import hide_secrets
from c4pipe.io.object_store import is_store
from c4pipe.wet.inputs import CRAWL_PATTERN

HIDDEN = "***"
"""What stands in a place instead of a secret."""

_SECRETS = re.compile(r"(?<=://)[^/?#]*(?=@)|(?<=[?#]).*", re.DOTALL)  # any value of a query can be one


def public_places(inputs: Sequence[str]) -> list[str]:
    """Returns the crawls and URLs among inputs, without user, password and signature, and URLs of servers without a
    query. Paths of this machine are left out: they mean nothing elsewhere.
    """
    web = [_SECRETS.sub(HIDDEN, each) for each in inputs if each.startswith(("http://", "https://"))]
    return web + [hide_secrets(each) for each in inputs if is_store(each) or CRAWL_PATTERN.fullmatch(each)]
