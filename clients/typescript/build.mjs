// Writes src/api.ts from docs/openapi.json: the types of the API, and which operations take an Idempotency-Key.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const document = JSON.parse(await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
const isKey = (parameter) => parameter.$ref === "#/components/parameters/IdempotencyKey";
const keyed = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations)
    .filter(([, operation]) => operation.parameters?.some(isKey))
    .map(([method]) => `${method.toUpperCase()} ${path}`),
);
if (keyed.length === 0) throw new Error("no operation of the document takes an Idempotency-Key");
const types = astToString(await openapiTS(document));
const operations = `/** The operations that take an Idempotency-Key. */\nexport const keyed: ReadonlySet<string> = new Set(${JSON.stringify(keyed, null, 2)});\n`;
await writeFile(new URL("src/api.ts", import.meta.url), `${types}\n${operations}`);
