/** Variables and secrets: who sees what, what is stored, and where a value must not be. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditEvents, workspaceEvents, workspaceVariables } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { seal, unseal } from "#server/secrets.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { list } from "./list.ts";
import { remove } from "./remove.ts";
import { set } from "./set.ts";
import { values } from "./values.ts";

const SECRET = "hunter2-très-secret";
let test: TestDatabase;
let world: World;
let id: string;

beforeAll(async () => {
  process.env.SLUICE_SECRETS_KEY = Buffer.alloc(32, 7).toString("base64url");
  resetEnv();
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  id = (await makeWorkspace(world, { owner: world.member })).id;
});
afterAll(async () => {
  delete process.env.SLUICE_SECRETS_KEY;
  resetEnv();
  await test.drop();
});

describe("a workspace's variables", () => {
  it("show a value again, but never a secret's", async () => {
    await set(world.member.ctx, { id, name: "DATA", value: "/data/2026" });
    const { variables } = await set(world.member.ctx, { id, name: "API_KEY", value: SECRET, secret: true });
    expect(variables.map(({ name, secret, value }) => [name, secret, value])).toEqual([
      ["API_KEY", true, null],
      ["DATA", false, "/data/2026"],
    ]);
    expect(await values(world.system, id)).toEqual({ API_KEY: SECRET, DATA: "/data/2026" });
  });

  it("are nowhere in the database in the clear", async () => {
    const rows = [
      await test.db.select().from(workspaceVariables),
      await test.db.select().from(auditEvents),
      await test.db.select().from(workspaceEvents),
    ];
    expect(JSON.stringify(rows)).toContain("API_KEY");
    expect(JSON.stringify(rows)).not.toContain("hunter2");
    expect(JSON.stringify(rows)).not.toContain("/data/2026");
  });

  it("belong to the owner: a lead or an admin sees none, and a person cannot read secrets back", async () => {
    await expect(list(world.lead.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
    await expect(list(world.admin.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
    await expect(values(world.member.ctx, id)).rejects.toMatchObject({ code: "forbidden" });
    await expect(set(world.member.ctx, { id, name: "API_KEY", value: "x", secret: false })).rejects.toMatchObject({
      code: "refused",
    });
  });

  it.each(["SLUICE_BROKER_URL", "LD_PRELOAD", "PATH", "1A", "A B", "JUPYTER_TOKEN"])(
    "refuse the name %s",
    async (name) => {
      await expect(set(world.member.ctx, { id, name, value: "x" })).rejects.toMatchObject({ code: "invalid" });
    },
  );

  it("go along with a duplicate, sealed anew", async () => {
    const copy = await duplicate(world.member.ctx, { id, name: "copy" });
    expect(await values(world.system, copy.id)).toEqual({ API_KEY: SECRET, DATA: "/data/2026" });
    const sealed = await test.db.select().from(workspaceVariables).where(eq(workspaceVariables.name, "API_KEY"));
    expect(new Set(sealed.map((row) => row.sealed)).size).toBe(2);
    await remove(world.member.ctx, { id: copy.id, name: "DATA" });
    expect(Object.keys(await values(world.system, id))).toHaveLength(2);
    expect(Object.keys(await values(world.system, copy.id))).toHaveLength(1);
  });
});

describe("a sealed secret", () => {
  it("opens for its owner alone, and not when a bit has changed", async () => {
    const sealed = await seal(SECRET, "ws-a/KEY");
    expect(await unseal(sealed, "ws-a/KEY")).toBe(SECRET);
    await expect(unseal(sealed, "ws-b/KEY")).rejects.toThrow("cannot be opened");
    const flipped = sealed.slice(0, 20) + (sealed[20] === "A" ? "B" : "A") + sealed.slice(21);
    await expect(unseal(flipped, "ws-a/KEY")).rejects.toThrow("cannot be opened");
    await expect(unseal("", "ws-a/KEY")).rejects.toThrow("cannot be opened");
  });
});
