/** The errors of the client. None of them contains a credential. */

/** The service refused the request, or failed. Branch on `code`: the message is for people and may change. */
export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The error's code, such as `NOT_FOUND`. Undefined if a gateway or a proxy responded in place of the service. */
    readonly code: string | undefined,
    message: string,
    /** A list of problems if the request is invalid, or else an object. */
    readonly details: unknown,
    /** Quote it when you report a problem. `GET /v1/requests/{requestId}` explains a refusal. */
    readonly requestId: string | undefined,
    /** The seconds to wait before the next attempt, if the service said so. */
    readonly retryAfter: number | undefined,
  ) {
    super(message);
  }
}

/** The service couldn't be reached, or the connection was lost: a change may or may not have taken effect. */
export class ConnectionFailed extends Error {
  override name = "ConnectionFailed";
}

/** Returns the error of a response. body: its JSON, or anything else if the service didn't send it. */
export function errorOf(response: Response, body: unknown): ApiError {
  const error = memberOf(body, "error");
  const code = memberOf(error, "code");
  const message = memberOf(error, "message");
  return new ApiError(
    response.status,
    typeof code === "string" ? code : undefined,
    typeof message === "string" ? message : `The response has the status ${response.status} and isn't from the service.`,
    memberOf(error, "details") ?? {},
    response.headers.get("X-Request-Id") ?? undefined,
    retryAfterOf(response),
  );
}

/** Returns the seconds of Retry-After (RFC 9110, section 10.2.3), or undefined if it is missing or invalid. */
export function retryAfterOf(response: Response): number | undefined {
  const value = response.headers.get("Retry-After");
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** Returns a member of a value of JSON, or undefined if it is another value or has none. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
