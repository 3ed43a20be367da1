/** Verifies what the service sends to webhook endpoints, as Standard Webhooks defines it. */

/** The request isn't authentic, too old, or not an event. Answer it with 400, and use nothing of it. */
export class InvalidSignature extends Error {
  override name = "InvalidSignature";
}

export interface Event {
  /** The same in every delivery of the event: ignore an event whose ID you have seen. */
  id: string;
  /** Such as `scan.completed`. Expect types that you don't know. */
  type: string;
  /** When it happened (RFC 3339). Events can arrive in any order. */
  timestamp: string;
  data: Record<string, unknown>;
}

export interface Delivery {
  /** Exactly as it was received. */
  body: string | Uint8Array;
  headers: Headers | Record<string, string | string[] | undefined>;
  /** The endpoint's secret, or several while it is being changed. */
  secrets: string | readonly string[];
  /** How far the request's time may differ from this machine's. 300 by default. */
  toleranceSeconds?: number;
}

/** Returns the event of a request to a webhook endpoint. Throws InvalidSignature, and TypeError for an invalid secret. */
export async function verify({ body, headers, secrets, toleranceSeconds = 300 }: Delivery): Promise<Event> {
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  if (id === "" || !/^\d+$/.test(timestamp)) throw new InvalidSignature("The request has no webhook-id or webhook-timestamp.");
  const content = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array([...new TextEncoder().encode(`${id}.${timestamp}.`), ...content]);
  const signatures = headerOf(headers, "webhook-signature").split(" ").filter((it) => it.startsWith("v1,"));
  const keys = await Promise.all([secrets].flat().map(keyOf));
  const checks = keys.flatMap((key) => signatures.map((it) => isSignature(key, it.slice(3), signed)));
  if (!(await Promise.all(checks)).includes(true)) throw new InvalidSignature("No signature of the request is right.");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new InvalidSignature("The request is too old, or a clock is wrong.");
  }
  const event: unknown = jsonOf(content);
  if (!isEvent(event)) throw new InvalidSignature("The body isn't an event: the endpoint has another format than `standard`.");
  return { id, type: event.type, timestamp: event.timestamp, data: event.data };
}

function headerOf(headers: Delivery["headers"], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const [, value] = Object.entries(headers).find(([it]) => it.toLowerCase() === name) ?? [];
  return [value].flat()[0] ?? "";
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(secret.trim().replace(/^whsec_/, ""));
  // Anyone can sign with an empty key.
  if (!bytes?.length) throw new TypeError("the secret of a webhook endpoint is whsec_ followed by a key");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

async function isSignature(key: CryptoKey, signature: string, signed: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const bytes = bytesOf(signature);
  return bytes !== undefined && crypto.subtle.verify("HMAC", key, bytes, signed);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (it) => it.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function jsonOf(content: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(content));
  } catch {
    return undefined;
  }
}

function isEvent(value: unknown): value is Event {
  if (typeof value !== "object" || value === null) return false;
  const { type, timestamp, data } = value as Partial<Event>;
  return typeof type === "string" && typeof timestamp === "string" && typeof data === "object" && data !== null;
}
