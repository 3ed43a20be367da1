// Calls the API with openapi-fetch, typed by openapi-typescript. Prints what it got, as JSON.
import createClient from "openapi-fetch"
import type { paths } from "./api"

const { BASE_URL: baseUrl = "", TOKEN: token = "", REPOSITORY_ID: repositoryId = "", NAME: name = "" } = process.env
const connect = (token: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } })

function some<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no content")
  return value
}

async function main(): Promise<void> {
  const api = connect(token)
  const me = some((await api.GET("/v1/me")).data).data
  const regions = some((await api.GET("/v1/regions")).data).data
  const made = some(
    (await api.POST("/v1/projects", { body: { name, region: "eu-central", websites: ["example.com"] } })).data,
  ).data
  if (!("websites" in made)) throw new Error("the older shape")
  const place = { params: { path: { projectId: made.id } } }
  const read = some((await api.GET("/v1/projects/{projectId}", place)).data).data
  const page = some((await api.GET("/v1/projects", { params: { query: { limit: 1 } } })).data)
  const change = { ...place, body: { description: "Changed" } }
  const updated = some((await api.PATCH("/v1/projects/{projectId}", change)).data).data
  const both = { websites: ["example.com"], consent: { trustedOrigins: ["example.com"] } }
  const invalid = await api.POST("/v1/projects", { body: { name, region: "eu-central", ...both } })
  const details = some(invalid.error).error.details
  const items = some((await api.GET("/v1/inbox", { params: { query: { status: "open", limit: 1 } } })).data).data
  const item = some(items[0])
  const stale = await api.PATCH("/v1/inbox/{itemId}", {
    params: { path: { itemId: item.id } },
    body: { status: "accepted", version: "0" },
  })
  const billing = some((await api.GET("/v1/billing")).data).data
  const asked = some((await api.POST("/v1/code-audit/scans", { body: { repositoryId } })).data).data
  if (asked.status !== "starting") throw new Error(asked.status)
  const polled = some(
    (
      await api.GET("/v1/code-audit/scan-requests/{preparationId}", {
        params: { path: { preparationId: asked.preparationId }, query: { repositoryId } },
      })
    ).data,
  ).data
  const gone = some((await api.DELETE("/v1/projects/{projectId}", place)).data).data
  const missing = await api.GET("/v1/projects/{projectId}", place)
  const stranger = await connect("assent_unknown").GET("/v1/me")
  console.log(
    JSON.stringify({
      principal: me.principal.type,
      regions: regions.length,
      website: some(made.websites[0]).origin,
      read: read.name,
      first: some(page.data[0]).projectId === made.id,
      more: page.pagination.hasMore,
      updated: updated.description,
      invalid: [invalid.response.status, Array.isArray(details) ? some(details[0]).path : details],
      item: item.status,
      stale: [stale.response.status, some(stale.error).error.code],
      plan: billing.plan.id,
      started: polled.status === "started" ? polled.scan.repositoryId === repositoryId : polled.status,
      deleted: gone.deletedWebsites,
      missing: [missing.response.status, some(missing.error).error.code],
      stranger: [stranger.response.status, some(stranger.error).error.code],
    }),
  )
}

void main()
