import { formatBytes } from "#components/format.ts";
import { Meter } from "#components/ui/meter.tsx";
import { State, type Tone } from "#components/ui/state.tsx";
import type { WorkspaceDataset } from "#server/contracts/dataset.ts";
import { accessAndSize } from "./dataset-choice.ts";

type Prefetch = NonNullable<WorkspaceDataset["prefetch"]>;

/** What a workspace mounts, where, and how far it has come into the cache of its node. */
export function WorkspaceDatasets({ datasets }: { datasets: WorkspaceDataset[] }) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
      {datasets.map((dataset) => (
        <li key={dataset.id} className="px-3.5 py-2.5">
          <p className="font-medium break-all">
            <code>{dataset.path}</code>
          </p>
          <p className="figures text-sm text-ink-2">{accessAndSize(dataset)}</p>
          {dataset.prefetch && <PrefetchLine name={dataset.name} prefetch={dataset.prefetch} />}
        </li>
      ))}
    </ul>
  );
}

const STATES: Record<Prefetch["state"], { tone: Tone; word: string }> = {
  reading: { tone: "busy", word: "being read into memory" },
  done: { tone: "ok", word: "was read into memory" },
  partly: { tone: "warn", word: "in memory in part" },
  interrupted: { tone: "warn", word: "reading ahead was interrupted" },
  failed: { tone: "bad", word: "could not be read" },
  missing: { tone: "bad", word: "not there" },
};

function PrefetchLine({ name, prefetch: { state, bytes, totalBytes, message } }: { name: string; prefetch: Prefetch }) {
  const { tone, word } = STATES[state];
  const far = totalBytes === null ? "" : `${formatBytes(bytes)} of ${formatBytes(totalBytes)}`;
  return (
    <div className="mt-1.5 text-sm">
      <p className="figures flex flex-wrap items-center justify-between gap-x-3">
        <State tone={tone}>{word}</State>
        {state !== "missing" && <span className="text-ink-2">{far}</span>}
      </p>
      {state === "reading" && totalBytes !== null && (
        <div className="mt-1">
          <Meter
            size="sm"
            max={totalBytes}
            segments={[{ key: "read", value: bytes, look: "used" }]}
            label={`${name}: ${far} read into memory`}
          />
        </div>
      )}
      {message && <p className="mt-0.5 text-ink-2">{message}</p>}
    </div>
  );
}
