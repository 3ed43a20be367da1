/** The client of assent's API: openapi-fetch with the types of the API, a credential, and safe retries. */
import createFetchClient, { type Client } from "openapi-fetch";

import { keyed, type paths } from "./api.js";
import { fetchWithRetries, type Fetch } from "./retries.js";

export type { components, operations, paths } from "./api.js";
export { ApiError, ConnectionFailed } from "./errors.js";
export { items, unwrap } from "./results.js";
export { type Event, InvalidSignature, verify } from "./webhooks.js";

export interface Options {
  /** The address of the service, such as `https://api.assent.example`. Without TLS, only this machine is allowed. */
  baseUrl: string;
  /** An API key or a user token. */
  apiKey: string;
  /** How often a request is sent again after a failure, if that is safe. 3 by default. */
  maxRetries?: number;
  /** The time of one attempt, in milliseconds. 60,000 by default, longer than the service takes for any request. */
  timeout?: number;
  /** Replaces the global `fetch`. */
  fetch?: Fetch;
}

/**
 * Returns a client. Its methods are those of openapi-fetch: `client.GET("/v1/projects", { params: … })`.
 *
 * A creation gets an Idempotency-Key unless it has one, so that it takes effect once however often it is sent.
 * Throws a TypeError for an address or a credential that can't be used. No error contains the credential.
 */
export function createClient({ baseUrl, apiKey, maxRetries = 3, timeout = 60_000, fetch = globalThis.fetch }: Options): Client<paths> {
  const address = new URL(baseUrl.trim());
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(address.hostname);
  if (address.protocol !== "https:" && !(address.protocol === "http:" && isLocal)) {
    throw new TypeError("baseUrl must begin with https://");
  }
  const credential = apiKey.trim();
  if (!/^[\x21-\x7e]+$/.test(credential)) throw new TypeError("apiKey is empty or has characters that no credential has");
  const client = createFetchClient<paths>({
    baseUrl: address.href.replace(/\/$/, ""),
    fetch: (request) => fetchWithRetries(request, { fetch, maxRetries, timeout }),
    headers: { Authorization: `Bearer ${credential}` },
    // The service redirects no request, and a redirect must not get the credential.
    redirect: "error",
  });
  client.use({
    onRequest({ request, schemaPath }) {
      if (keyed.has(`${request.method} ${schemaPath}`) && !request.headers.has("Idempotency-Key")) {
        request.headers.set("Idempotency-Key", crypto.randomUUID());
      }
    },
  });
  return client;
}
