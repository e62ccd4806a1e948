import { Writable } from "node:stream";
import { eq } from "drizzle-orm";
import pino from "pino";
import { expect, it } from "vitest";
import { openDatabase } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { newCode, newSecret } from "#server/ids.ts";
import { loggerOptions } from "#server/log.ts";
import { scrub } from "#server/scrub.ts";

/** What is written for one call of a logger like ours. */
function logged(write: (log: pino.Logger) => void): string {
  const lines: string[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  write(pino({ ...loggerOptions("test"), level: "info" }, stream));
  const line = lines.join("");
  expect(() => JSON.parse(line) as unknown).not.toThrow();
  return line;
}

it.each([
  ["a personal access token", newSecret("slp")],
  ["a workspace's credential", newSecret("slw")],
  ["a hash of a password", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$aGFzaGhhc2g"],
  ["a signed token", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"],
])("%s is logged nowhere: not in a message, a field or an error", (_, secret) => {
  const line = logged((log) =>
    log.error({ err: new Error(`with ${secret} it broke`), other: { deep: [secret] } }, secret),
  );
  expect(line).not.toContain(secret);
  expect(line).toContain("it broke");
});

it("addresses lose their passwords, codes and tokens, and stay readable", () => {
  const code = newCode();
  const line = scrub(
    `{"msg":"GET http://h/enter?code=${code}&next=/gpus /invite/${code} /password/${code} /password-links/${code} postgres://sluice:hunter2@127.0.0.1:5432/db Authorization: Bearer ${code}"}`,
  );
  expect(line).not.toContain(code);
  expect(line).not.toContain("hunter2");
  expect(line).toContain("&next=/gpus");
  expect(line).toContain("@127.0.0.1:5432/db");
});

it("what was bound to a statement that failed is not told with the error", async () => {
  const { db, close } = openDatabase("postgres://nobody@127.0.0.1:1/none", { max: 1, applicationName: "test" });
  const failing = db
    .update(workspaces)
    .set({ serverToken: 'jupyter"s token\nof 2 lines' })
    .where(eq(workspaces.id, "ws-1"));
  const error: unknown = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await close();
  expect(String(error)).toContain("of 2 lines");
  const line = logged((log) => log.error({ err: error }, "away"));
  expect(line).not.toContain("of 2 lines");
  expect(line).toContain("server_token");
  expect(line).toContain("away");
});

it("ordinary lines stay as they are", () => {
  const line = '{"level":30,"msg":"lease lea-aaaaaaaaaaaaaaaaaaaaaaaaaa granted at http://localhost:3000/gpus?x=1"}';
  expect(scrub(line)).toBe(line);
});

it.each([
  ["words that begin like tokens", "eyJ-"],
  ["addresses without an end", "a.b-c+"],
  ["addresses without a password", "http://a:"],
])("reads a long line of %s in time linear in its length", (_, piece) => {
  const line = piece.repeat(200_000 / piece.length);
  const started = performance.now();
  expect(scrub(line)).toBe(line);
  expect(performance.now() - started).toBeLessThan(500);
});

it("hides a token that stands in the middle of a word", () => {
  const token = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
  expect(scrub(`a-${token} x_eyJ-${token}`)).toBe("a-[hidden] x_eyJ-[hidden]");
});
