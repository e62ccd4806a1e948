import { expect, test } from "vitest";
import type { Database } from "#server/db/client.ts";
import { answersSoon } from "./answers-soon.ts";

const answering = (execute: () => Promise<unknown>) => ({ execute }) as unknown as Pick<Database, "execute">;

test("a health check fails in time when the database hangs", async () => {
  await expect(
    answersSoon(
      answering(() => new Promise(() => undefined)),
      20,
    ),
  ).rejects.toMatchObject({
    code: "unavailable",
  });
  await answersSoon(
    answering(async () => []),
    5_000,
  );
});
