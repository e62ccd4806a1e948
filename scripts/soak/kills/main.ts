/**
 * `npm run soak -- kills`: a whole installation under a busy queue, of which a random process is killed every few
 * seconds; between the kills its database and its disk go away, and its clock is set. At the end no lease may be left,
 * none may ever have been more than its GPU had, and every notebook must be as it was saved.
 *
 * SLUICE_KILLS, SLUICE_SEED and SLUICE_SOAK_SECONDS (for the kills alone) come from the soak. The seed decides pauses,
 * kinds of processes, amounts and hold times; what a process is doing when it is killed is the machine's matter.
 */
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mulberry32 } from "#server/scheduler/simulate/trace.ts";
import { change, joinByApi, launchByApi, signInByApi, teamByName } from "../../../e2e/fixtures/api.ts";
import { BUILT } from "../../../e2e/fixtures/built.ts";
import globalSetup from "../../../e2e/fixtures/global-setup.ts";
import { Lab } from "./lab.ts";
import { Ledger } from "./ledger.ts";
import { Member } from "./member.ts";
import { clockOutages, databaseOutages, diskOutages, type Outage } from "./outages.ts";
import { type Hold, overcommitted } from "./overcommit.ts";
import { eventually, GPUS, type Pool, startPool } from "./pool.ts";
import { settle } from "./settle.ts";
import { makeStateDir, type StateDir } from "./state-dir.ts";
import { KINDS, type Target } from "./targets.ts";

const kills = Number(process.env.SLUICE_KILLS ?? 100);
const seed = Number(process.env.SLUICE_SEED ?? 1);
const pauseMs = (Number(process.env.SLUICE_SOAK_SECONDS ?? 600) * 1000) / kills;
const WORKSPACES = 3;
const NOTEBOOKS_EACH = 3;
/** Grants that the run makes at least, and time after the kills to reach them. */
const minimumGrants = 3 * kills;
const GRANTS_LIMIT_MS = 600_000;
/** Time after an outage until somebody is granted a share again. */
const RECOVERY_MS = 180_000;
const LOGS = path.resolve(".sluice", "soak", "kills");

const findings: string[] = [];
const began = performance.now();
const say = (line: string) => console.log(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${line}`);
const onFinding = (finding: string) => {
  findings.push(finding);
  say(`FINDING ${finding}`);
};

say(`seed ${seed}`);
await globalSetup();
const state = await makeStateDir(path.resolve(BUILT));
try {
  const pool = await startPool(state);
  try {
    await play(pool, state);
  } finally {
    await pool.stop();
    await state.keepLogs(LOGS);
    say(`the logs are in ${LOGS}`);
  }
} finally {
  await state.remove();
}
for (const finding of findings) console.log(`FINDING ${finding}`);
process.exit(findings.length === 0 ? 0 : 1);

async function play(pool: Pool, state: StateDir): Promise<void> {
  const ledger = await Ledger.open(pool.stateDir);
  if (!(await eventually(60_000, async () => (await ledger.gpus()) === GPUS))) throw new Error("not all GPUs joined");
  const members = await gather(pool);
  say(`${members.length} notebooks in ${WORKSPACES} workspaces share ${GPUS} GPUs`);
  const ending = new AbortController();
  const watching = ledger.watch(ending.signal, onFinding);
  const resting = new AbortController();
  const working = members.map(async (member) => await member.work(resting.signal));

  const random = mulberry32(seed);
  const outages = [...databaseOutages(pool), ...diskOutages(state)];
  let killed = 0;
  for (let number = 1; number <= kills; number++) {
    await sleep(pauseMs * (0.3 + 1.4 * random()));
    const target = choose(pool.targets(), random);
    if (target !== undefined) killed += kill(target);
    const { grants, waiting, held } = await ledger.counts().catch(() => ({ grants: "?", waiting: "?", held: "?" }));
    const what = target === undefined ? "nothing" : `${target.kind} (${target.pid})`;
    say(`kill ${number}/${kills}: ${what}; ${grants} grants, ${waiting} waiting, ${held} held`);
    // Spread over the run, each in the midst of kills.
    const due = Math.floor((number * (outages.length + 1)) / (kills + 1));
    const before = Math.floor(((number - 1) * (outages.length + 1)) / (kills + 1));
    for (const outage of outages.slice(before, due)) await suffer(outage, ledger);
  }
  await checkLedger(ledger);
  for (const outage of clockOutages(pool)) await suffer(outage, ledger);
  const enough = async () => (await ledger.counts()).grants >= minimumGrants;
  if (!(await eventually(GRANTS_LIMIT_MS, enough))) onFinding(`fewer than ${minimumGrants} grants`);
  resting.abort();
  await Promise.all(working);
  say("all notebooks rest; the installation settles");
  for (const [failure, count] of failuresOf(members))
    say(`${String(count).padStart(4)} turns not finished: ${failure}`);
  const { grants, waited } = await ledger.counts();
  await settle({ pool, ledger, members, onFinding });
  ending.abort();
  await watching;
  await ledger.close();
  // The soak reads these lines.
  const counts = { kills: killed, grants, waited, turns: members.reduce((sum, { turns }) => sum + turns, 0) };
  for (const [name, count] of Object.entries({ ...counts, outages: outages.length + clockOutages(pool).length }))
    console.log(`${count} ${name}`);
}

/** People of one team, each with a workspace and some notebooks. */
async function gather({ api, installation }: Pool): Promise<Member[]> {
  const { portalUrl, ports } = installation;
  const team = await teamByName(api, "demo");
  const whole = 1000 * GPUS;
  await change(api, "put", `/teams/${team}/quotas/soft`, { guaranteedMilli: whole, limitMilli: whole });
  const members: Member[] = [];
  for (let person = 1; person <= WORKSPACES; person++) {
    const email = `member-${person}@example.test`;
    await joinByApi(api, team, email, `Member ${person}`);
    const own = await signInByApi(portalUrl, email);
    const { id } = await launchByApi(own, `work ${person}`, team);
    const lab = new Lab(own, id, ports[2]);
    for (let number = 1; number <= NOTEBOOKS_EACH; number++) {
      const random = mulberry32(seed + 100 * person + number);
      members.push(
        new Member({ api: own, workspaceId: id, lab, name: `notes-${person}-${number}`, random, onFinding }),
      );
    }
  }
  return members;
}

/** Each kind is as likely as any other, however many processes it has. */
function choose(targets: readonly Target[], random: () => number): Target | undefined {
  const kinds = KINDS.filter((kind) => targets.some((target) => target.kind === kind));
  const kind = kinds[Math.floor(random() * kinds.length)];
  const ofKind = targets.filter((target) => target.kind === kind);
  return ofKind[Math.floor(random() * ofKind.length)];
}

/** 0 when the process has just ended by itself. */
function kill({ pid }: Target): number {
  try {
    return process.kill(pid, "SIGKILL") ? 1 : 0;
  } catch {
    return 0;
  }
}

async function suffer({ name, happen }: Outage, ledger: Ledger): Promise<void> {
  say(`begins: ${name}`);
  await happen();
  const over = performance.now();
  const ready = await eventually(RECOVERY_MS, async () => (await ledger.counts()).grants >= 0);
  const { grants } = ready ? await ledger.counts() : { grants: 0 };
  const recovered = await eventually(RECOVERY_MS, async () => (await ledger.counts()).grants > grants);
  if (recovered) say(`over: ${name}; granted again after ${((performance.now() - over) / 1000).toFixed(1)} s`);
  else onFinding(`nobody was granted a share for ${RECOVERY_MS / 1000} s after ${name}`);
}

/** While nobody has set the clock: afterwards the times in the ledger overlap. The last kill may have been the database. */
async function checkLedger(ledger: Ledger): Promise<void> {
  let holds: Hold[] = [];
  const read = async () => {
    holds = await ledger.holds();
    return holds.length > 0;
  };
  if (!(await eventually(RECOVERY_MS, read))) onFinding("the ledger cannot be read, or is empty");
  for (const sentence of overcommitted(holds)) onFinding(`in the ledger, ${sentence}`);
}

function failuresOf(members: readonly Member[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const [failure, count] of members.flatMap(({ failures }) => [...failures]))
    sums.set(failure, (sums.get(failure) ?? 0) + count);
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 25);
}
