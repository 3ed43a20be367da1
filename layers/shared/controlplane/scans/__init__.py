"""Scans of repositories, from the request to its findings. One module per step of the life cycle:

    requests    create_request     POST /v1/code-audit/scans
                                   request starting; repository names it; watch entry; message prepare-scan
                acquire_request    scan_preparation takes the lease
                start_scan         request started, scan queued; repository names the scan; message execute-scan
    execution   acquire_scan       scan_execution takes the lease: scan running
                report_stage       progress of the scan; its inventory
                complete_scan      scan completed; repository free; preview used; no watch entry; work item for
                                   expiry; a locked scan listed under its report
    failures    fail_attempted     a worker gives up, or the attempts are used up
                fail_abandoned     the sweep, a new request, or an operator finds work that no worker will take
                fail_deleted       cleanup ends the work of a deleted project, repository, or organization
                cancel_scan        POST /v1/code-audit/scans/{scanId}/cancel
                cancel_superseded  a newer commit, or its end, makes a pull request's scan obsolete
                                   each: request or scan failed or canceled; repository free; no watch entry
    findings    expire_superseded  cleanup sets when the findings of earlier scans expire
    unlocks     unlock_scan        POST /v1/code-audit/scans/{scanId}/unlock
                                   scan readable in full; report paid for; price in ledger and balance, with a
                                   top-up if it is due; message publish-scan
                unlock_others      scan_execution unlocks the listed scans of a report that was paid for

Each line is one write, or one transaction. The life cycle is guarded by this:

- The repository's item names its active request and scan, so a repository has one scan at a time. The write that ends
  the request or scan removes both names.
- A lease (`table.leases`) lets one worker at a time write a request or scan. Each attempt is counted, and the last one
  ends the work. A worker whose lease is lost can't write anymore.
- The message is written in the transaction that needs it, and sent after that (`queues.outbox`).
- A watch entry makes the sweep check work that hasn't ended after ten minutes. The sweep enqueues the work of a
  crashed worker again, or fails it if no worker will take it.
- A waiting slot (`table.waiting`) limits how many requests wait for `start_scan` before they respond.

`queue` requests the scans that no person asked for. `items` defines requests and scans as they are stored, `reads`
reads them and defines inventories, and `findings` stores what an attempt found. `history` knows the findings of a
repository over all of its scans, and resolves the inbox items of those that are gone.
"""
