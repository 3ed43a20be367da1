// Calls the API with the package of clients/typescript. Prints what it got, as JSON.
import { ApiError, createClient, items, unwrap } from "openassent"

const { BASE_URL: baseUrl = "", TOKEN: token = "", REPOSITORY_ID: repositoryId = "", NAME: name = "" } = process.env

function some<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no content")
  return value
}

async function refusal(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error("not refused")
}

async function main(): Promise<void> {
  const api = createClient({ baseUrl, apiKey: token })
  const me = await unwrap(api.GET("/v1/me"))
  const regions = await unwrap(api.GET("/v1/regions"))
  const body = { name, region: "eu-central", websites: ["example.com"] }
  const made = await unwrap(api.POST("/v1/projects", { body }))
  if (!("websites" in made)) throw new Error("the older shape")
  const place = { params: { path: { projectId: made.id } } }
  const read = await unwrap(api.GET("/v1/projects/{projectId}", place))
  const listed: string[] = []
  for await (const project of items((cursor) => api.GET("/v1/projects", { params: { query: { limit: 1, cursor } } }))) {
    listed.push(project.projectId)
    if (listed.length === 2) break
  }
  const change = { ...place, body: { description: "Changed" } }
  const updated = await unwrap(api.PATCH("/v1/projects/{projectId}", change))
  const both = { websites: ["example.com"], consent: { trustedOrigins: ["example.com"] } }
  const invalid = await refusal(unwrap(api.POST("/v1/projects", { body: { name, region: "eu-central", ...both } })))
  const found = await unwrap(api.GET("/v1/inbox", { params: { query: { status: "open", limit: 1 } } }))
  const item = some(found[0])
  const decision = { params: { path: { itemId: item.id } }, body: { status: "accepted" as const, version: "0" } }
  const stale = await refusal(unwrap(api.PATCH("/v1/inbox/{itemId}", decision)))
  const billing = await unwrap(api.GET("/v1/billing"))
  const asked = await unwrap(api.POST("/v1/code-audit/scans", { body: { repositoryId } }))
  if (asked.status !== "starting") throw new Error(asked.status)
  const request = { path: { preparationId: asked.preparationId }, query: { repositoryId } }
  const polled = await unwrap(api.GET("/v1/code-audit/scan-requests/{preparationId}", { params: request }))
  const gone = await unwrap(api.DELETE("/v1/projects/{projectId}", place))
  const missing = await refusal(unwrap(api.GET("/v1/projects/{projectId}", place)))
  const stranger = await refusal(unwrap(createClient({ baseUrl, apiKey: "assent_unknown" }).GET("/v1/me")))
  console.log(
    JSON.stringify({
      principal: me.principal.type,
      regions: regions.length,
      website: some(made.websites[0]).origin,
      read: read.name,
      first: listed[0] === made.id,
      more: listed.length === 2,
      updated: updated.description,
      invalid: [invalid.status, Array.isArray(invalid.details) ? invalid.details[0].path : invalid.details],
      item: item.status,
      stale: [stale.status, stale.code],
      plan: billing.plan.id,
      started: polled.status === "started" ? polled.scan.repositoryId === repositoryId : polled.status,
      deleted: gone.deletedWebsites,
      missing: [missing.status, missing.code],
      stranger: [stranger.status, stranger.code],
    }),
  )
}

void main()
