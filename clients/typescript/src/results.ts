/** What a response contains: the data, each item of a list, or the error. */
import { errorOf } from "./errors.js";

/** What the client's methods return. */
interface Result {
  data?: unknown;
  error?: unknown;
  response: Response;
}

type Envelope<R extends Result> = NonNullable<R["data"]>;
type Data<R extends Result> = Envelope<R> extends { data: infer D } ? D : never;
type Item<R extends Result> = Data<R> extends readonly (infer I)[] ? I : never;

/** Returns the `data` of the response: `await unwrap(client.GET("/v1/me"))`. Throws ApiError, ConnectionFailed. */
export async function unwrap<R extends Result>(call: Promise<R>): Promise<Data<R>> {
  return (await envelopeOf(call)).data;
}

/**
 * Yields the items of a list, and requests the next page when it is needed. Throws ApiError, ConnectionFailed.
 *
 *     for await (const project of items((cursor) => client.GET("/v1/projects", { params: { query: { cursor } } }))) …
 *
 * page: requests the page at the cursor, the first one if it is undefined.
 */
export async function* items<R extends Result>(
  page: (cursor: string | undefined) => Promise<R>,
): AsyncGenerator<Item<R>, void, undefined> {
  let cursor: string | undefined;
  do {
    const { data, pagination } = await envelopeOf(page(cursor));
    yield* data as Item<R>[];
    cursor = pagination?.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

async function envelopeOf<R extends Result>(
  call: Promise<R>,
): Promise<{ data: Data<R>; pagination?: { nextCursor?: string | null } }> {
  const { data, error, response } = await call;
  if (typeof data !== "object" || data === null || !("data" in data)) throw errorOf(response, error);
  return data as { data: Data<R> };
}
