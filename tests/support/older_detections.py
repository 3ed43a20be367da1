"""Puts vendors and their findings into the state that a release without merged evidence would have left."""

from controlplane.store import keys
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import Update, table
from tests.support.table import PREPARED
from tests.support.world import Company


def as_older_release_wrote_it(project: ProjectItem, company: Company) -> None:
    """Removes what older releases didn't store: a vendor's evidence, and the vendor in its finding's list position."""
    partition = keys.organization_pk(company.organization_id)
    vendors = table.query(partition, prefix=keys.vendor_prefix(project.project_id.local), consistent=True).items
    for vendor in vendors:
        table.update(
            Update(keys.Key(vendor["pk"], vendor["sk"]), "REMOVE #evidence, #beforeConsent, #revision"), PREPARED
        )
    for item in table.query(partition, prefix=keys.INBOX_PREFIX, consistent=True).items:
        evidence = [{name: value for name, value in piece.items() if name != "seenAt"} for piece in item["evidence"]]
        if item["source"] != "runtime":
            continue
        values = {"evidence": evidence, "inboxOrder": keys.inbox_position(item["inboxOrder"])}
        change = "SET #evidence = :evidence, #inboxOrder = :inboxOrder"
        table.update(Update(keys.Key(item["pk"], item["sk"]), change, values=values), PREPARED)
