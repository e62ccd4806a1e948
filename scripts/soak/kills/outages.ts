/** What happens to an installation beside processes that are killed: no database, no disk, another time. */
import { rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt, run } from "#scripts/lib/processes.ts";
import { signalProcess } from "#server/launchers/local/processes.ts";
import type { Pool } from "./pool.ts";
import type { StateDir } from "./state-dir.ts";

const AWAY_MS = 20_000;
/** Below the time after which a process that does not answer is ended. */
const FROZEN_MS = 15_000;
const FULL_MS = 15_000;
const JUMP_MS = 20_000;
/** Seconds: past every limit of liveness, behind by as much, a lost hour, and one that comes twice. */
const JUMPS = [120, -120, 3_600, -3_600];

export type Outage = { name: string; happen: () => Promise<void> };

/** PostgreSQL ends as often as it is started, and later does not answer. */
export function databaseOutages({ targets }: Pool): Outage[] {
  const away = async () => {
    for (const until = performance.now() + AWAY_MS; performance.now() < until; await sleep(100)) {
      for (const { pid, kind } of targets()) if (kind === "PostgreSQL") signalProcess(pid, "SIGKILL");
    }
  };
  const frozen = async () => {
    const stopped = targets().filter(({ kind }) => kind.startsWith("PostgreSQL"));
    for (const { pid } of stopped) signalProcess(pid, "SIGSTOP");
    await sleep(FROZEN_MS);
    for (const { pid } of stopped) signalProcess(pid, "SIGCONT");
  };
  return [
    { name: `PostgreSQL away for ${AWAY_MS / 1000} s`, happen: away },
    { name: `PostgreSQL without an answer for ${FROZEN_MS / 1000} s`, happen: frozen },
  ];
}

/** The disk is full but for the installation's reserve, and then without that. None where there is no disk to fill. */
export function diskOutages({ path: stateDir, isDisk, available }: StateDir): Outage[] {
  if (!isDisk) return [];
  const filler = (number: number) => path.join(stateDir, `filler-${number}`);
  const fill = async (number: number) => {
    // Others write meanwhile: what does not fit any more is not allocated at all.
    for (const part of [1, 0.95, 0.5]) {
      const bytes = Math.floor((await available()) * part);
      if (bytes === 0) return;
      if ((await attempt(() => run("fallocate", ["--length", String(bytes), filler(number)]))) === undefined) return;
    }
  };
  const empty = async (count: number) => {
    for (let number = 0; number < count; number++) await rm(filler(number), { force: true });
  };
  const once = async () => {
    await fill(0);
    await sleep(FULL_MS);
    await empty(1);
  };
  const again = async () => {
    let count = 0;
    for (const until = performance.now() + FULL_MS; performance.now() < until; await sleep(200)) await fill(count++);
    await empty(count);
  };
  return [
    { name: `disk filled once, for ${FULL_MS / 1000} s`, happen: once },
    { name: `disk kept full, for ${FULL_MS / 1000} s`, happen: again },
  ];
}

/** The clock is set, and set right again. */
export function clockOutages({ clock }: Pool): Outage[] {
  return JUMPS.map((seconds) => ({
    name: `clock ${Math.abs(seconds)} s ${seconds > 0 ? "ahead" : "behind"} for ${JUMP_MS / 1000} s`,
    happen: async () => {
      await clock.set(seconds);
      await sleep(JUMP_MS);
      await clock.set(0);
    },
  }));
}
