/** Decides whether and when a request is sent again. */
import { ConnectionFailed, memberOf, retryAfterOf } from "./errors.js";

export type Fetch = (request: Request) => Promise<Response>;

export interface Sending {
  fetch: Fetch;
  maxRetries: number;
  timeout: number;
}

// In milliseconds. A service that asks for more than the longest one gets no retry: the error says how long.
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const LONGEST_RETRY_AFTER = 60_000;
// The service, or a gateway in front of it, may have performed the request.
const UNKNOWN_OUTCOMES = new Set([500, 502, 503, 504]);
// A repeated one has no other effect than the first.
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

/** Sends the request until it has an outcome. Throws ConnectionFailed, or the reason of the request's signal. */
export async function fetchWithRetries(request: Request, { fetch, maxRetries, timeout }: Sending): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    let response: Response | undefined;
    try {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]);
      const received = await fetch(new Request(request.clone(), { signal }));
      // Read here, so that a response that is cut off counts as none.
      const content = await received.arrayBuffer();
      response = new Response(content.byteLength > 0 ? content : null, received);
    } catch {
      request.signal.throwIfAborted();
    }
    if (attempt > maxRetries || !(await mayRepeat(request, response))) {
      if (response !== undefined) return response;
      // Not with the cause: its text can quote a header.
      throw new ConnectionFailed(`${request.method} ${new URL(request.url).pathname}: the service didn't respond`);
    }
    const asked = 1000 * ((response && retryAfterOf(response)) ?? 0);
    if (response !== undefined && asked > LONGEST_RETRY_AFTER) return response;
    // A random part of a pause that doubles, so that clients that failed together don't return together.
    await pause(asked + Math.random() * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)), request.signal);
  }
}

/** Returns whether the request can be sent again. response: undefined if there is none. */
async function mayRepeat(request: Request, response: Response | undefined): Promise<boolean> {
  const hasKey = request.headers.has("Idempotency-Key");
  if (response === undefined || UNKNOWN_OUTCOMES.has(response.status)) return hasKey || REPEATABLE.has(request.method);
  if (response.status === 429) return true; // refused before anything was done
  if (response.status !== 409 || !hasKey) return false;
  // The first attempt with this key is still running.
  const body: unknown = await response.clone().json().catch(() => undefined);
  return memberOf(memberOf(memberOf(body, "error"), "details"), "reason") === "in_flight";
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
  signal.throwIfAborted();
}
