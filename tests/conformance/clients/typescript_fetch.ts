// Calls the API with openapi-generator's TypeScript client. Prints what it got, as JSON.
import {
  BillingApi,
  CodeAuditApi,
  Configuration,
  ErrorEnvelopeFromJSON,
  InboxApi,
  ProjectsApi,
  ResponseError,
  SystemApi,
} from "./generated"

const { BASE_URL: basePath = "", TOKEN: token = "", REPOSITORY_ID: repositoryId = "", NAME: name = "" } = process.env
const connect = (token: string) => new Configuration({ basePath, accessToken: token })

function some<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no content")
  return value
}

async function refused(call: Promise<unknown>) {
  try {
    await call
  } catch (failure) {
    if (failure instanceof ResponseError) {
      return { status: failure.response.status, error: ErrorEnvelopeFromJSON(await failure.response.json()).error }
    }
    throw failure
  }
  throw new Error("not refused")
}

async function main(): Promise<void> {
  const configuration = connect(token)
  const [projects, system, inbox] = [ProjectsApi, SystemApi, InboxApi].map((Api) => new Api(configuration)) as [
    ProjectsApi,
    SystemApi,
    InboxApi,
  ]
  const audits = new CodeAuditApi(configuration)
  const me = (await system.getMe()).data
  const regions = (await system.listRegions()).data
  const projectCreate = { name, region: "eu-central" as const, websites: ["example.com"] }
  const made = (await projects.createProject({ projectCreate })).data
  if (!("websites" in made)) throw new Error("the older shape")
  const projectId = made.id
  const read = (await projects.getProject({ projectId })).data
  const page = await projects.listProjects({ limit: 1 })
  const updated = (await projects.updateProject({ projectId, projectUpdate: { description: "Changed" } })).data
  const both = { ...projectCreate, consent: { trustedOrigins: ["example.com"] } }
  const invalid = await refused(projects.createProject({ projectCreate: both }))
  const item = some((await inbox.listInboxItems({ status: "open", limit: 1 })).data[0])
  const inboxItemUpdate = { status: "accepted" as const, version: "0" }
  const stale = await refused(inbox.updateInboxItem({ itemId: item.id, inboxItemUpdate }))
  const billing = (await new BillingApi(configuration).getBilling()).data
  const asked = (await audits.startScan({ scanCreate: { repositoryId } })).data
  if (asked.status !== "starting") throw new Error(asked.status)
  const polled = (await audits.getScanRequest({ preparationId: asked.preparationId, repositoryId })).data
  const gone = (await projects.deleteProject({ projectId })).data
  const missing = await refused(projects.getProject({ projectId }))
  const stranger = await refused(new SystemApi(connect("assent_unknown")).getMe())
  const details = invalid.error.details
  console.log(
    JSON.stringify({
      principal: me.principal.type,
      regions: regions.length,
      website: some(made.websites[0]).origin,
      read: read.name,
      first: some(page.data[0]).projectId === made.id,
      more: page.pagination.hasMore,
      updated: updated.description,
      invalid: [invalid.status, Array.isArray(details) ? some(details[0]).path : details],
      item: item.status,
      stale: [stale.status, stale.error.code],
      plan: billing.plan.id,
      started: polled.status === "started" ? polled.scan.repositoryId === repositoryId : polled.status,
      deleted: gone.deletedWebsites,
      missing: [missing.status, missing.error.code],
      stranger: [stranger.status, stranger.error.code],
    }),
  )
}

void main()
