import { readFile } from "node:fs/promises";
import { sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { z } from "zod";
import { openDatabase } from "#server/db/client.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { messageFor, SluiceError, toSluiceError } from "./errors.ts";

it("shows a person the sentences that are for people", () => {
  expect(messageFor(new SluiceError("refused", "No room."))).toBe("No room.");
  expect(messageFor(new Error("uv ended with 1."))).toBe("uv ended with 1.");
});

it("shows nobody a statement, its values, or a fault of the language", async () => {
  const { db, close } = openDatabase("postgres://nobody@127.0.0.1:1/none", { max: 1, applicationName: "test" });
  const away: unknown = await db.execute(sql`delete from "sign_in_failures" where key = ${"hunter2"}`).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await close();
  const statement = new Error('Failed query: delete from "sign_in_failures" params: hunter2');
  const faults = [new TypeError("x is undefined at hunter2"), z.number().safeParse("hunter2").error, "hunter2"];
  for (const error of [away, statement, ...faults]) expect(messageFor(error)).not.toMatch(/hunter2|delete|x is/);
  expect(messageFor(away)).toContain("database");
});

it("calls a database away whose Unix socket is not there, and no file", async () => {
  const { db, close } = openDatabase("postgres://nobody@localhost/none?host=/nonexistent", { max: 1 });
  const away: unknown = await db.execute(sql`select 1`).catch((error: unknown) => error);
  await close();
  expect(toSluiceError(away).code).toBe("unavailable");
  const file: unknown = await readFile("/nonexistent/file").catch((error: unknown) => error);
  expect(toSluiceError(file).code).toBe("internal");
});

it("calls a database unavailable that has no disk space, memory or connection left", async () => {
  const { db } = await useTestDatabase();
  const refusedWith = async (code: string): Promise<unknown> =>
    await db.execute(sql.raw(`do $$ begin raise using errcode = '${code}'; end $$`)).catch((error: unknown) => error);
  for (const code of ["53100", "53200", "53300"]) {
    const full = await refusedWith(code);
    expect(toSluiceError(full)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("disk space") as string,
    });
    expect(messageFor(full)).toContain("disk space");
  }
  expect(toSluiceError(await refusedWith("22012")).code).toBe("internal");
});
