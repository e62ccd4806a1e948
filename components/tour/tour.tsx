/* eslint-disable @next/next/no-img-element -- what a notebook drew is nowhere to be fetched from */
"use client";

import { useEffect, useMemo, useRef, useState } from "react";
import { type ApiResult, api } from "#components/api.ts";
import { cx } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Card } from "#components/ui/page.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import type { KernelOutput, StartedKernel } from "#server/contracts/workspace-kernel.ts";
import { joined, type Keyed } from "./outputs.ts";
import { runCell } from "./run-cell.ts";
import { type Cell, cells, type Notebook } from "./script.ts";
import { untilRunning } from "./until-running.ts";

type Shown = { state: "waiting" | "running" | "done" | "failed"; outputs: Keyed[] };
type Phase = { is: "before" } | { is: "preparing"; step: string } | { is: "playing" } | { is: "after" };

const PATHS: Record<Notebook, string> = { first: "tour/first.ipynb", second: "tour/second.ipynb" };

/** Two notebooks that share a GPU, played cell by cell in a workspace of the person's own. */
export function Tour({
  amounts,
  launch,
  known,
}: {
  amounts: Record<Notebook, string>;
  /** What its workspace is launched with, when there is none yet. */
  launch: { image: string; teamId: string; gpuType: string };
  /** The workspace of an earlier tour. */
  known: { id: string; running: boolean } | undefined;
}) {
  const script = useMemo(() => cells(amounts), [amounts]);
  const [phase, setPhase] = useState<Phase>({ is: "before" });
  const [problem, setProblem] = useState<string>();
  const [shown, setShown] = useState<Record<string, Shown>>({});
  const ending = useRef<AbortController>(undefined);
  useEffect(() => () => ending.current?.abort(), []);

  const show = (key: string, change: (before: Shown) => Shown) =>
    setShown((all) => ({ ...all, [key]: change(all[key] ?? { state: "waiting", outputs: [] }) }));

  const play = async () => {
    const control = new AbortController();
    ending.current = control;
    const { signal } = control;
    setProblem(undefined);
    setShown({});
    const kernels: Partial<Record<Notebook, string>> = {};
    let workspaceId: string | undefined;
    try {
      const step = (text: string) => setPhase({ is: "preparing", step: text });
      workspaceId = await workspaceOf(known, launch, step, signal);
      for (const notebook of ["first", "second"] as const) {
        step(`Starting the ${notebook} notebook`);
        const path = PATHS[notebook];
        const started = await api<StartedKernel>("POST", `/workspaces/${workspaceId}/kernels`, { path });
        kernels[notebook] = dataOf(started).kernelId;
      }
      setPhase({ is: "playing" });
      await playAll(script, { workspaceId, kernels, show, signal });
      setPhase({ is: "after" });
    } catch (error) {
      if (signal.aborted) return;
      setProblem(error instanceof Error ? error.message : String(error));
      setPhase({ is: "before" });
    } finally {
      // What they hold goes back with them.
      for (const id of Object.values(kernels)) await api("DELETE", `/workspaces/${workspaceId}/kernels/${id}`);
    }
  };

  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3" aria-live="polite">
        {phase.is === "before" || phase.is === "after" ? (
          <Button variant="primary" onClick={() => void play()}>
            {phase.is === "after" ? "Play it again" : "Play the tour"}
          </Button>
        ) : (
          <p className="text-ink-2">{phase.is === "preparing" ? `${phase.step} …` : "Playing …"}</p>
        )}
        {problem && <p className="text-bad">{problem}</p>}
        {phase.is === "after" && <p>That was it: the notebook kept its variables while the GPU came and went.</p>}
      </div>
      {script.map((cell, index) => (
        <CellView key={cell.key} number={index + 1} cell={cell} shown={shown[cell.key]} />
      ))}
    </div>
  );
}

/** The running workspace of the tour: that of an earlier one, or a new one. */
async function workspaceOf(
  known: { id: string; running: boolean } | undefined,
  launch: { image: string; teamId: string; gpuType: string },
  step: (text: string) => void,
  signal: AbortSignal,
): Promise<string> {
  step("Launching a workspace");
  const made = known ?? dataOf(await api<WorkspaceView>("POST", "/workspaces", { name: "tour", ...launch }));
  if (known !== undefined && !known.running) dataOf(await api("POST", `/workspaces/${known.id}/start`));
  await untilRunning(made.id, step, signal);
  return made.id;
}

type Stage = {
  workspaceId: string;
  kernels: Partial<Record<Notebook, string>>;
  show: (key: string, change: (before: Shown) => Shown) => void;
  signal: AbortSignal;
};

async function playAll(script: readonly Cell[], stage: Stage): Promise<void> {
  const waiting: Promise<void>[] = [];
  for (const cell of script) {
    if (cell.waits) {
      const { ended, begun } = begin(cell, stage);
      waiting.push(ended);
      await begun;
      await pause(3000, stage.signal);
      continue;
    }
    // The same notebook's next cell comes after what it waits for.
    if (cell.notebook === "second") await Promise.all(waiting);
    await begin(cell, stage).ended;
    await pause(1200, stage.signal);
  }
}

/** `begun`: something has come of it. */
function begin(
  cell: Cell,
  { workspaceId, kernels, show, signal }: Stage,
): { ended: Promise<void>; begun: Promise<void> } {
  show(cell.key, () => ({ state: "running", outputs: [] }));
  let first: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    first = resolve;
  });
  const onOutput = (output: KernelOutput) => {
    first();
    if (output.kind === "done") show(cell.key, (now) => ({ ...now, state: output.ok ? "done" : "failed" }));
    else show(cell.key, (now) => ({ ...now, outputs: joined(now.outputs, output) }));
  };
  const kernelId = kernels[cell.notebook] ?? "";
  const ended = runCell({ workspaceId, kernelId }, cell.code, onOutput, signal).finally(first);
  return { ended, begun };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  signal.throwIfAborted();
}

function dataOf<T>(result: ApiResult<T>): T {
  if (result.ok) return result.data;
  throw new Error(result.error.message);
}

function CellView({ number, cell, shown }: { number: number; cell: Cell; shown: Shown | undefined }) {
  const state = shown?.state ?? "waiting";
  return (
    <Card
      className={cx("overflow-hidden", cell.notebook === "second" && "sm:ml-10", state === "waiting" && "opacity-80")}
    >
      <section aria-label={`Step ${number}: ${cell.says}`}>
        <header className="flex flex-wrap items-baseline justify-between gap-x-4 border-b border-line px-3 py-2">
          <p>
            <span className="figures mr-2 text-ink-2">{number}</span>
            {cell.says}
          </p>
          <p className="text-sm text-ink-2">
            {cell.notebook === "first" ? "first notebook" : "second notebook"}
            {state === "running" && ", running"}
          </p>
        </header>
        <pre className="bg-sunken px-3 py-2 text-sm whitespace-pre-wrap">
          <code>{cell.code}</code>
        </pre>
        {shown && shown.outputs.length > 0 && (
          <div className="flex flex-col gap-2 border-t border-line px-3 py-2 text-sm">
            {shown.outputs.map(({ key, output }) => (
              <OutputView key={key} output={output} />
            ))}
          </div>
        )}
      </section>
    </Card>
  );
}

function OutputView({ output }: { output: KernelOutput }) {
  switch (output.kind) {
    case "picture":
      return (
        // biome-ignore lint/performance/noImgElement: it came from the notebook and is nowhere to be fetched from
        <img
          src={`data:image/png;base64,${output.png}`}
          alt="What the program drew"
          className="max-w-full self-start"
        />
      );
    case "text":
    case "error":
      return (
        <pre className={cx("overflow-x-auto whitespace-pre-wrap", output.kind === "error" && "text-bad")}>
          {output.text.trimEnd()}
        </pre>
      );
    case "done":
      return null;
  }
}
