// The client against a server of the test's, which answers as told. Run `npm run build` first.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { after, before, beforeEach, mock, test } from "node:test";

import { ApiError, ConnectionFailed, createClient, InvalidSignature, items, unwrap, verify } from "../dist/index.js";

const SECRET = "assent_secret";
let server, baseUrl, answers, requests;

before(async () => {
  mock.method(Math, "random", () => 0); // no pauses
  server = createServer(async (request, response) => {
    const body = (await request.toArray()).join("");
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === "lost") return request.socket.destroy();
    const [status, content, headers] = answer;
    response.writeHead(status, { "Content-Type": "application/json", "X-Request-Id": "req_1", ...headers });
    response.end(JSON.stringify(content));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());
beforeEach(() => (requests = []));

const connect = (...told) => ((answers = told), createClient({ baseUrl, apiKey: ` ${SECRET}\n` }));
const ok = (data, more = {}) => [200, { success: true, data, ...more }];
const refused = (status, code, details = {}, headers = {}) => [
  status,
  { success: false, error: { code, message: `No: ${code}`, details } },
  headers,
];
const read = (client) => unwrap(client.GET("/v1/me"));
const create = (client) => unwrap(client.POST("/v1/organizations", { body: { name: "Acme" } }));
const change = (client) => unwrap(client.PATCH("/v1/organizations/default", { body: { organizationId: "org_1" } }));

test("data is unwrapped, and the credential is sent trimmed", async () => {
  assert.deepEqual(await read(connect(ok({ scopes: [] }))), { scopes: [] });
  assert.equal(requests[0].headers.authorization, `Bearer ${SECRET}`);
});

test("a refusal is an error with what the service said", async () => {
  const client = connect(refused(404, "NOT_FOUND", { hint: "look" }));
  await assert.rejects(read(client), (error) => {
    assert.ok(error instanceof ApiError);
    const { status, code, message, details, requestId, retryAfter } = error;
    const expected = [404, "NOT_FOUND", "No: NOT_FOUND", { hint: "look" }, "req_1", undefined];
    assert.deepEqual([status, code, message, details, requestId, retryAfter], expected);
    return true;
  });
});

test("a response of another program is an error without a code", async () => {
  for (const content of ["<html>", null, { error: "odd" }]) {
    await assert.rejects(read(connect([403, content])), { name: "ApiError", status: 403, code: undefined });
  }
  await assert.rejects(read(connect([200, { hello: 1 }])), { name: "ApiError", status: 200 });
});

test("every page of a list is requested when it is needed", async () => {
  const client = connect(
    ok([{ id: 1 }, { id: 2 }], { pagination: { nextCursor: "c1", hasMore: true } }),
    ok([], { pagination: { nextCursor: "c2", hasMore: true } }),
    ok([{ id: 3 }], { pagination: { nextCursor: null, hasMore: false } }),
  );
  const page = (cursor) => client.GET("/v1/projects", { params: { query: { limit: 2, cursor } } });
  const found = [];
  for await (const { id } of items(page)) found.push([id, requests.length]);
  assert.deepEqual(found, [[1, 1], [2, 1], [3, 3]]);
  assert.deepEqual(requests.map((it) => it.url.split("?")[1]), ["limit=2", "limit=2&cursor=c1", "limit=2&cursor=c2"]);
});

test("what may be repeated is, with the same body and key", async () => {
  for (const failure of ["lost", [500, {}], [502, {}], [503, {}], [504, {}], refused(429, "RATE_LIMITED")]) {
    for (const call of [read, create]) {
      requests = [];
      assert.equal(await call(connect(failure, failure, ok("done"))), "done");
      assert.equal(requests.length, 3);
      assert.equal(new Set(requests.map((it) => it.headers["idempotency-key"] + it.body)).size, 1);
    }
  }
  assert.match(requests[0].headers["idempotency-key"], /^[0-9a-f-]{36}$/);
});

test("another change is repeated only after a refusal for its rate", async () => {
  assert.equal(await change(connect(refused(429, "RATE_LIMITED"), ok("done"))), "done");
  for (const [failure, error] of [["lost", ConnectionFailed], [[503, {}], ApiError]]) {
    requests = [];
    await assert.rejects(change(connect(failure, ok("done"))), error);
    assert.equal(requests.length, 1);
  }
});

test("a creation waits for its first attempt, and for nothing else that conflicts", async () => {
  assert.equal(await create(connect(refused(409, "CONFLICT", { reason: "in_flight" }), ok("done"))), "done");
  await assert.rejects(create(connect(refused(409, "CONFLICT", {}), ok("done"))), { code: "CONFLICT" });
  await assert.rejects(read(connect(refused(404, "NOT_FOUND"), ok("done"))), { code: "NOT_FOUND" });
});

test("retries end, and none waits for more than a minute", async () => {
  await assert.rejects(read(connect("lost")), ConnectionFailed);
  assert.equal(requests.length, 4);
  requests = [];
  const client = connect(refused(429, "RATE_LIMITED", {}, { "Retry-After": "61" }), ok("done"));
  await assert.rejects(read(client), { status: 429, retryAfter: 61 });
  assert.equal(requests.length, 1);
});

test("a pause begins after what the service asks for, and ends with the caller's signal", async () => {
  const began = Date.now();
  await read(connect(refused(503, "UNAVAILABLE", {}, { "Retry-After": "1" }), ok("done")));
  assert.ok(Date.now() - began >= 1000);
  const client = connect(refused(503, "UNAVAILABLE", {}, { "Retry-After": "50" }));
  await assert.rejects(client.GET("/v1/me", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
});

test("the credential follows no redirect and is in no error", async () => {
  for (const told of ["lost", [302, {}, { Location: "https://elsewhere.example/" }], refused(401, "UNAUTHORIZED")]) {
    await assert.rejects(read(connect(told)), (error) => !`${error.stack} ${JSON.stringify(error)}`.includes(SECRET));
  }
  for (const apiKey of ["", `${SECRET}\nX: 1`, `${SECRET} é`]) {
    assert.throws(() => createClient({ baseUrl, apiKey }), (error) => error instanceof TypeError && !error.message.includes(SECRET));
  }
  for (const address of ["http://api.example", "ftp://localhost", "file:///etc"]) {
    assert.throws(() => createClient({ baseUrl: address, apiKey: SECRET }), TypeError);
  }
});

const KEY = `whsec_${Buffer.from("a key").toString("base64")}`;
const OTHER = `whsec_${Buffer.from("another key").toString("base64")}`;
const EVENT = { type: "scan.completed", timestamp: "2026-03-04T05:06:07Z", data: { scan: { id: "scn_ü" } } };

function delivery({ body = JSON.stringify(EVENT), seconds = 0, key = "a key", id = "evt_1" } = {}) {
  const timestamp = String(Math.floor(Date.now() / 1000) + seconds);
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = { "Webhook-Id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1a,x v1,${signature}` };
  return { body, headers, secrets: KEY };
}

test("an authentic delivery is an event, as bytes, with other headers, and after a rotation", async () => {
  const sent = delivery();
  for (const varied of [
    sent,
    { ...sent, body: Buffer.from(sent.body) },
    { ...sent, headers: new Headers(sent.headers) },
    { ...sent, secrets: [OTHER, KEY] },
    delivery({ seconds: -299 }),
  ]) {
    assert.deepEqual(await verify(varied), { id: "evt_1", ...EVENT });
  }
});

test("anything else is refused", async () => {
  const sent = delivery();
  for (const forged of [
    { ...sent, body: `${sent.body} ` },
    { ...sent, headers: { ...sent.headers, "Webhook-Id": "evt_2" } },
    { ...sent, headers: { ...sent.headers, "webhook-signature": "v1,AAAA v1,é" } },
    { ...sent, headers: {} },
    { ...sent, secrets: OTHER },
    { ...sent, secrets: [] },
    delivery({ seconds: -301 }),
    delivery({ seconds: 310 }),
    delivery({ body: '{"text":"for Slack"}' }),
    delivery({ body: "not JSON" }),
  ]) {
    await assert.rejects(verify(forged), InvalidSignature);
  }
  for (const secrets of ["whsec_", "", "whsec_é"]) await assert.rejects(verify({ ...sent, secrets }), TypeError);
});
