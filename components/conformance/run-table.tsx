"use client";

import { formatCount, formatShare } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { State, type Tone } from "#components/ui/state.tsx";
import type { ConformanceList, ConformanceRun } from "#server/contracts/conformance.ts";

type Row = { suite: ConformanceRun; runs: ConformanceRun[] };
type Place = Pick<ConformanceRun, "gpuType" | "way">;

/** Packages against GPU types, remote or local: what of their tests passed, and what nobody has run yet. */
export function RunTable({ runs, gpuTypes }: ConformanceList) {
  const rows = [...Map.groupBy(runs, ({ suite }) => suite).values()].flatMap((group): Row[] => {
    const [suite] = group;
    return suite === undefined ? [] : [{ suite, runs: group }];
  });
  const known = new Map(runs.map(({ gpuType, way }) => [`${gpuType} ${way}`, { gpuType, way }]));
  const without = gpuTypes.filter((gpuType) => !runs.some((run) => run.gpuType === gpuType));
  const places: Place[] = [...known.values(), ...without.map((gpuType) => ({ gpuType, way: "remote" as const }))];
  return (
    <DataTable
      caption="Packages and GPU types"
      rows={rows}
      rowKey={({ suite }) => suite.suite}
      filter={({ suite }) => `${suite.package} ${suite.title} ${suite.note ?? ""}`}
      filterLabel="Filter packages"
      columns={[
        {
          id: "package",
          header: "Package",
          sort: ({ suite }) => `${suite.package} ${suite.title}`,
          className: "min-w-40 max-w-md",
          cell: ({ suite }) => (
            <>
              <span className="font-medium">{suite.package}</span>{" "}
              <span className="figures text-ink-2">{suite.version}</span>
              {suite.title !== suite.package && <p className="text-sm text-ink-2">{suite.title}</p>}
              {suite.note && <p className="text-sm text-ink-2">{suite.note}</p>}
            </>
          ),
        },
        ...places.map(column),
      ]}
    />
  );
}

function column({ gpuType, way }: Place): Column<Row> {
  const runOf = ({ runs }: Row) => runs.find((run) => run.gpuType === gpuType && run.way === way);
  const share = (run: ConformanceRun | undefined) => (run === undefined ? -1 : run.passed / Math.max(1, run.of));
  return {
    id: `${gpuType} ${way}`,
    header: `${gpuType}, ${way}`,
    sort: (row) => share(runOf(row)),
    cell: (row) => {
      const run = runOf(row);
      if (run === undefined) return <span className="text-ink-2">not run yet</span>;
      return (
        <div className="figures">
          <State tone={toneOf(run)}>
            {run.passed === run.of ? "works" : `${formatShare(run.passed, run.of)} works`}
          </State>
          <p className="text-sm text-ink-2">
            {formatCount(run.passed)} of {formatCount(run.of)} tests, {run.date}
          </p>
        </div>
      );
    },
  };
}

/** A few failures of thousands are named by the note; most of them failing is no support. */
function toneOf({ passed, of }: ConformanceRun): Tone {
  if (passed === of) return "ok";
  return passed / Math.max(1, of) >= 0.5 ? "warn" : "bad";
}
