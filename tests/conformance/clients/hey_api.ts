// Calls the API with the client of @hey-api/openapi-ts. Prints what it got, as JSON.
import {
  createProject,
  deleteProject,
  getBilling,
  getMe,
  getProject,
  getScanRequest,
  listInboxItems,
  listProjects,
  listRegions,
  startScan,
  updateInboxItem,
  updateProject,
} from "./generated"
import { createClient, createConfig } from "./generated/client"

const { BASE_URL: baseUrl = "", TOKEN: token = "", REPOSITORY_ID: repositoryId = "", NAME: name = "" } = process.env
const connect = (token: string) => createClient(createConfig({ baseUrl, auth: token }))

function some<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no content")
  return value
}

async function main(): Promise<void> {
  const client = connect(token)
  const me = some((await getMe({ client })).data).data
  const regions = some((await listRegions({ client })).data).data
  const body = { name, region: "eu-central" as const, websites: ["example.com"] }
  const made = some((await createProject({ client, body })).data).data
  if (!("websites" in made)) throw new Error("the older shape")
  const path = { projectId: made.id }
  const read = some((await getProject({ client, path })).data).data
  const page = some((await listProjects({ client, query: { limit: 1 } })).data)
  const updated = some((await updateProject({ client, path, body: { description: "Changed" } })).data).data
  const invalid = await createProject({ client, body: { ...body, consent: { trustedOrigins: ["example.com"] } } })
  const details = some(invalid.error).error.details
  const items = some((await listInboxItems({ client, query: { status: "open", limit: 1 } })).data).data
  const item = some(items[0])
  const stale = await updateInboxItem({ client, path: { itemId: item.id }, body: { status: "accepted", version: "0" } })
  const billing = some((await getBilling({ client })).data).data
  const asked = some((await startScan({ client, body: { repositoryId } })).data).data
  if (asked.status !== "starting") throw new Error(asked.status)
  const request = { path: { preparationId: asked.preparationId }, query: { repositoryId } }
  const polled = some((await getScanRequest({ client, ...request })).data).data
  const gone = some((await deleteProject({ client, path })).data).data
  const missing = await getProject({ client, path })
  const stranger = await getMe({ client: connect("assent_unknown") })
  console.log(
    JSON.stringify({
      principal: me.principal.type,
      regions: regions.length,
      website: some(made.websites[0]).origin,
      read: read.name,
      first: some(page.data[0]).projectId === made.id,
      more: page.pagination.hasMore,
      updated: updated.description,
      invalid: [some(invalid.response).status, Array.isArray(details) ? some(details[0]).path : details],
      item: item.status,
      stale: [some(stale.response).status, some(stale.error).error.code],
      plan: billing.plan.id,
      started: polled.status === "started" ? polled.scan.repositoryId === repositoryId : polled.status,
      deleted: gone.deletedWebsites,
      missing: [some(missing.response).status, some(missing.error).error.code],
      stranger: [some(stranger.response).status, some(stranger.error).error.code],
    }),
  )
}

void main()
