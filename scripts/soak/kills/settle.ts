/** The end of the soak: everything runs again, every notebook is there, and nothing is held any more. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { workspacePaths } from "#server/launchers/local/workspace-files.ts";
import { stopWorkspaces } from "../../../e2e/fixtures/api.ts";
import type { Ledger, Open } from "./ledger.ts";
import type { Member } from "./member.ts";
import { type Hold, overcommitted } from "./overcommit.ts";
import { eventually, GPUS, type Pool } from "./pool.ts";

const LIMIT_MS = 180_000;
/** Hold time of the whole GPUs that are borrowed at the end. */
const WHOLE_SECONDS = 3;

export type Setting = {
  pool: Pool;
  ledger: Ledger;
  members: readonly Member[];
  onFinding: (finding: string) => void;
};

export async function settle(setting: Setting): Promise<void> {
  const { pool, ledger, members, onFinding } = setting;
  if (!(await eventually(LIMIT_MS, async () => (await unhealthy(pool)).length === 0)))
    onFinding(`the health page still has ${(await unhealthy(pool).catch(String)).toString()}`);
  if (!(await eventually(LIMIT_MS, async () => (await ledger.gpus()) === GPUS)))
    onFinding(`${await ledger.gpus()} of ${GPUS} GPUs can be borrowed`);
  await Promise.all(members.map(async (member) => await checkMember(member, onFinding)));
  await borrowWhole(setting);
  await stopWorkspaces(pool.api).catch((error: unknown) => onFinding(`workspaces do not stop: ${String(error)}`));
  await checkNothingHeld(setting);
  const computed = await computedHolds(setting);
  console.log(`${computed.length} turns computed on their lease`);
  for (const sentence of overcommitted(computed)) onFinding(`in the notebooks' own record, ${sentence}`);
}

/** Components that do not work, for a person. */
async function unhealthy({ api }: Pool): Promise<string[]> {
  const answer = await api.get("/api/v1/health", { timeout: 20_000 });
  const { components } = (await answer.json()) as { components: { name: string; state: string; detail: string }[] };
  return components.filter(({ state }) => state === "down").map(({ name, detail }) => `${name}: ${detail}`);
}

/** The workspace runs again, or is started again, and its notebook is as it was saved. */
async function checkMember(member: Member, onFinding: (finding: string) => void): Promise<void> {
  const { name } = member.desk;
  let last = "";
  const works = async () => {
    try {
      await member.keepRunning();
      await member.checkNotebook();
      return true;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
      return false;
    }
  };
  if (!(await eventually(LIMIT_MS, works))) onFinding(`the notebook ${name} is lost: ${last}`);
}

/** All of the pool at one time: an amount that leaked would be missing. */
async function borrowWhole({ members, onFinding }: Setting): Promise<void> {
  await Promise.all(
    members.slice(0, GPUS).map(async (member) => {
      let last = "";
      const borrowed = await eventually(LIMIT_MS, async () => {
        try {
          await member.turn("1", WHOLE_SECONDS);
          return true;
        } catch (error) {
          last = error instanceof Error ? error.message : String(error);
          return false;
        }
      });
      if (!borrowed) onFinding(`${member.desk.name} cannot borrow a whole GPU: ${last}`);
    }),
  );
}

/** Neither in the tables nor on the GPU servers. */
async function checkNothingHeld({ pool, ledger, onFinding }: Setting): Promise<void> {
  const nothing: Open = { leases: 0, requests: 0, intervals: 0 };
  const isNothing = async () => JSON.stringify(await ledger.open()) === JSON.stringify(nothing);
  if (!(await eventually(LIMIT_MS, isNothing))) onFinding(`not ended: ${JSON.stringify(await ledger.open())}`);
  const unaccounted = await ledger.unaccounted();
  if (unaccounted > 0) onFinding(`${unaccounted} leases do not have exactly one interval in the ledger`);
  // Each gpud makes one worker ahead of the next client.
  const spare = async () => {
    const found = pool.targets();
    const servers = found.filter(({ kind }) => kind === "gpud");
    const workers = (pid: number) => found.filter(({ kind, parent }) => kind === "gpud worker" && parent === pid);
    return servers.length === 2 && servers.every(({ pid }) => workers(pid).length <= 1);
  };
  if (await eventually(LIMIT_MS, spare)) return;
  const left = pool.targets().filter(({ kind }) => kind.startsWith("gpud"));
  onFinding(`the GPU servers still have ${left.map(({ kind, pid }) => `${kind} ${pid}`).join(", ")}`);
}

/** When notebooks computed on which lease, from the first answer of its GPU to the last one. */
async function computedHolds({ pool, ledger, members, onFinding }: Setting): Promise<Hold[]> {
  const amounts = await ledger.amounts();
  const holds = members.map(async ({ desk, record }) => {
    const home = workspacePaths(pool.stateDir, desk.workspaceId).home;
    const text = await readFile(path.join(home, record), "utf8").catch(() => "");
    return text.split("\n").flatMap((line) => {
      const turn = turnOf(line);
      if (turn === undefined) return [];
      const amount = amounts.get(turn.lease);
      if (amount !== undefined) return [{ what: turn.lease, ...amount, ...turn }];
      onFinding(`${desk.name} computed under the lease ${turn.lease}, which the database has lost`);
      return [];
    });
  });
  return (await Promise.all(holds)).flat();
}

/** A line that was cut off by a kill or a full disk says nothing. */
function turnOf(line: string): { lease: string; from: number; to: number } | undefined {
  try {
    return JSON.parse(line) as { lease: string; from: number; to: number };
  } catch {
    return undefined;
  }
}
