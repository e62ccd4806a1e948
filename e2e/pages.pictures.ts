/**
 * Draws every page of the portal into docs/pages (`npm run pictures`): what belongs to a person on an installation with
 * a few workspaces that work, what belongs to a pool on the sample data of `npm start -- --demo`.
 */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { type APIRequestContext, type Browser, expect, type Page, test } from "@playwright/test";
import { FOLDER, index, type Route } from "#scripts/pictures/pages.ts";
import {
  ADMIN,
  change,
  joinByApi,
  launchByApi,
  PASSWORD,
  passwordLinkByApi,
  runByApi,
  signInByApi,
  stopWorkspaces,
  teamByName,
  versionByName,
} from "./fixtures/api.ts";
import { BUILT } from "./fixtures/built.ts";
import { draw } from "./fixtures/camera.ts";
import { type Installation, startInstallation } from "./fixtures/installation.ts";
import { setUp, signIn } from "./fixtures/portal.ts";

const COLLEAGUE = "ada@example.test";
const STRANGER = "grace@example.test";

/** A program that keeps a slice of the GPU busy for a while. */
const TRAINING = `
import time
import numpy as np
from numba import cuda

@cuda.jit
def step(weights):
    i = cuda.grid(1)
    if i < weights.size:
        for _ in range(200):
            weights[i] = weights[i] * 0.999 + 0.001

weights = cuda.to_device(np.zeros(1 << 16, np.float32))
until = time.time() + 40
while time.time() < until:
    step[256, 256](weights)
    cuda.synchronize()
`.trim();

test("an installation with a few workspaces", async ({ browser }) => {
  const installation = await startInstallation({ builtBy: BUILT });
  let api: APIRequestContext | undefined;
  try {
    await installation.ready;
    const admin = await pageOf(browser, installation);
    await draw(admin, "/setup", installation.setupLink);
    await setUp(admin, installation.setupLink);
    api = await signInByApi(installation.portalUrl);
    const made = await furnish(api, installation);
    const stranger = await pageOf(browser, installation);
    await draw(stranger, "/sign-in", "/sign-in");
    await draw(stranger, "/invite/[code]", made.invitation);
    await draw(stranger, "/password/[code]", made.password);
    await signIn(stranger, STRANGER);
    await draw(stranger, "/shared/[id]", `/shared/${made.workspace}`);
    const workspace = `/workspaces/${made.workspace}`;
    const places: [Route, string][] = [
      ["/workspaces", "/workspaces"],
      ["/workspaces/new", "/workspaces/new"],
      ["/workspaces/[id]", workspace],
      ["/workspaces/[id]/notebooks", `${workspace}/notebooks`],
      ["/workspaces/[id]/gpu", `${workspace}/gpu`],
      ["/workspaces/[id]/log", `${workspace}/log`],
      ["/workspaces/[id]/people", `${workspace}/people`],
      ["/workspaces/[id]/settings", `${workspace}/settings`],
      ["/tour", "/tour"],
      ["/gpus", "/gpus"],
      ["/queue", "/queue"],
      ["/gpus/works-here", "/gpus/works-here"],
      ["/datasets", "/datasets"],
      ["/health", "/health"],
      ["/environments", "/environments"],
      ["/environments/[id]", `/environments/${made.environment}`],
      ["/sizes", "/sizes"],
      ["/notices", "/notices"],
      ["/settings", "/settings"],
    ];
    for (const [route, address] of places) await draw(admin, route, address);
  } finally {
    if (api !== undefined) await stopWorkspaces(api);
    await api?.dispose();
    await installation.stop();
  }
});

test("a pool of 1,000 GPUs", async ({ browser }) => {
  const env = { SLUICE_ADMIN_EMAIL: ADMIN, SLUICE_ADMIN_PASSWORD: PASSWORD };
  const installation = await startInstallation({ env, demo: true });
  try {
    await installation.ready;
    const api = await signInByApi(installation.portalUrl);
    const { team, whatIf } = await plan(api);
    const page = await pageOf(browser, installation);
    await signIn(page, ADMIN);
    const places: [Route, string][] = [
      ["/pool", "/pool"],
      ["/teams", "/teams"],
      ["/teams/[name]", `/teams/${team}`],
      ["/usage", "/usage"],
      ["/what-if", `/what-if?run=${whatIf}`],
      ["/costs", "/costs"],
      ["/gpu-audit", "/gpu-audit"],
      ["/people", "/people"],
      ["/policies", "/policies"],
      ["/calendars", "/calendars"],
      ["/audit", "/audit"],
    ];
    for (const [route, address] of places) await draw(page, route, address);
    await api.dispose();
  } finally {
    await installation.stop();
  }
});

test("the index", async () => {
  await writeFile(path.join(FOLDER, "README.md"), index());
});

async function pageOf(browser: Browser, { portalUrl }: Installation): Promise<Page> {
  return await (await browser.newContext({ baseURL: portalUrl, timezoneId: "Europe/Berlin" })).newPage();
}

type Made = { workspace: string; environment: string; invitation: string; password: string };

/** Two workspaces that share the GPU, a queue, a stopped one, and something in every list. */
async function furnish(api: APIRequestContext, { stateDir }: Installation): Promise<Made> {
  const team = await teamByName(api, "demo");
  await joinByApi(api, team, COLLEAGUE, "Ada Colleague");
  await joinByApi(api, team, STRANGER, "Grace Stranger");
  const invited = { email: "alan@example.test", teamId: team };
  const { link } = await change<{ link: string }>(api, "post", "/invitations", invited);
  const password = await passwordLinkByApi(api, COLLEAGUE);
  const folder = path.join(stateDir, "datasets", "digits");
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "digits.csv"), "0,1,2,3\n".repeat(100_000));
  for (const each of [folder, path.join(folder, "digits.csv")]) await chmod(each, 0o755);
  const source = { kind: "folder", path: folder };
  const digits = { name: "digits", description: "1,797 pictures of handwritten digits", source };
  await change(api, "post", "/datasets", digits);
  await change(api, "post", "/access-tokens", { name: "nightly report", scopes: ["read"] });

  const { id } = await launchByApi(api, "image search");
  await change(api, "put", `/workspaces/${id}/variables/EPOCHS`, { value: "20" });
  await change(api, "put", `/workspaces/${id}/variables/API_KEY`, { value: "not for anybody", secret: true });
  await change(api, "post", `/workspaces/${id}/collaborators`, { person: COLLEAGUE, role: "viewer" });
  const past = await launchByApi(api, "thesis figures");
  await runByApi(api, past.id, "figures.ipynb", "%gpu attach 0.25");
  await change(api, "post", `/workspaces/${past.id}/stop`);
  const other = await launchByApi(api, "price forecast");
  await runByApi(api, id, "evaluate.ipynb", "%gpu attach 0.25");
  await runByApi(api, id, "train.ipynb", `%gpu attach 0.5\n${TRAINING}`);
  // Waits for longer than the pictures take, and ends with its workspace.
  runByApi(api, other.id, "forecast.ipynb", "%gpu attach 0.5").catch(() => undefined);
  const environment = await versionByName(api, "cuda-python");
  await expect(async () => {
    const board = (await (await api.get("/api/v1/gpus")).json()) as { requests: unknown[] };
    expect(board.requests).toHaveLength(1);
  }).toPass({ timeout: 60_000 });
  return { workspace: id, environment, invitation: link, password };
}

const WORKING_HOURS = [0, 1, 2, 3, 4].map((day) => ({ fromMinute: day * 1440 + 480, toMinute: day * 1440 + 1200 }));

/** What only people enter: calendars, a reservation, a budget, a request for more, and a question to what-if. */
async function plan(api: APIRequestContext): Promise<{ team: string; whatIf: string }> {
  const team = "team-1";
  const id = await teamByName(api, team);
  const quota = { guaranteedMilli: 8000, limitMilli: 40_000, version: 1 };
  await change(api, "put", `/teams/${id}/quotas/h200`, { ...quota, budgetMilliHours: 6_000_000 });
  const more = { guaranteedMilli: 4000, limitMilli: 40_000 };
  const windows = WORKING_HOURS.map((hours) => ({ ...hours, ...more }));
  await change(api, "put", `/teams/${id}/quotas/h200/windows`, { windows });
  const batch = WORKING_HOURS.map(({ fromMinute, toMinute }) => ({
    ...{ fromMinute: toMinute, toMinute: (fromMinute + 1440) % 10_080 },
    kind: "batch",
  }));
  await change(api, "put", "/gpu-types/l40s/windows", { windows: batch });
  const day = 24 * 3_600_000;
  const at = (days: number, hours = 0) => new Date(Math.ceil(Date.now() / day) * day + days * day + hours * 3_600_000);
  const span = (from: Date, to: Date) => ({ startsAt: from.toISOString(), endsAt: to.toISOString() });
  const lesson = { teamId: id, gpuType: "a100", amount: "4", unit: "0.5", note: "Lesson on attention" };
  const repeat = { until: at(30).toISOString().slice(0, 10), timeZone: "UTC" };
  await change(api, "post", "/reservations", { ...lesson, ...span(at(2, 10), at(2, 12)), repeat });
  // Whoever asks for a team is in it.
  await change(api, "post", `/teams/${id}/members`, { email: ADMIN, role: "lead" });
  const reason = "Two weeks of training before the deadline";
  const asked = { teamId: id, gpuType: "h200", limitMilli: 60_000, reason, ...span(at(0), at(14)) };
  await change(api, "post", "/quota-requests", asked);
  const question = { from: at(-8).toISOString(), to: at(-1).toISOString(), types: [{ gpuType: "h200", gpus: 300 }] };
  const { id: whatIf } = await change<{ id: string }>(api, "post", "/what-ifs", question);
  await expect(async () => {
    const view = (await (await api.get(`/api/v1/what-ifs/${whatIf}`)).json()) as { state: string };
    expect(view.state).toBe("done");
  }).toPass({ timeout: 300_000 });
  return { team, whatIf };
}
