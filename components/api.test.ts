import { afterEach, expect, it, vi } from "vitest";
import { api } from "./api.ts";

afterEach(() => vi.unstubAllGlobals());

/** The error of a page when the portal responds with this one. */
async function told(error: { message: string; detail?: unknown }) {
  vi.stubGlobal("fetch", async () => Response.json({ error: { code: "invalid", ...error } }, { status: 400 }));
  const answer = await api("POST", "/teams", {});
  if (answer.ok) throw new Error("it was answered");
  return answer.error;
}

it("shows a field's message without the field's name, and keeps the name for the form", async () => {
  expect(await told({ message: "limitMilli: The limit is at least the guaranteed amount." })).toMatchObject({
    message: "The limit is at least the guaranteed amount.",
    fields: { limitMilli: "The limit is at least the guaranteed amount." },
  });
});

it("shows each message of several fields once", async () => {
  const fields = [
    { field: "name", message: "A name is needed." },
    { field: "team.name", message: "A name is needed." },
    { field: "email", message: "Write an e-mail address." },
  ];
  const message = "name: A name is needed. team.name: A name is needed. email: Write an e-mail address.";
  expect((await told({ message, detail: { fields } })).message).toBe("A name is needed. Write an e-mail address.");
});

it("shows a message without a field unchanged", async () => {
  const message = "Set a price for soft first: it was in the pool.";
  expect(await told({ message })).toMatchObject({ message, fields: {} });
});
