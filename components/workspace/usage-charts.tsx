import { BehindChart } from "#components/chart/behind.tsx";
import { type Bin, TimeChart } from "#components/chart/time-chart.tsx";
import { cx, formatAmount, formatBytes, formatCores, formatMark } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { Card, Section } from "#components/ui/page.tsx";
import type { WorkspaceSamples, WorkspaceView } from "#server/contracts/workspace.ts";
import { SampleTable } from "./sample-table.tsx";

const RANGES = [
  [60, "1 h"],
  [360, "6 h"],
  [1440, "24 h"],
] as const;

/** Charts beside each other have one base line, with and without a legend. */
const CHART = "flex min-w-0 flex-col *:last:mt-auto";

/** Processor time and memory of the workspace's processes and its GPUs, over the last hour, six, or a day. */
export function UsageCharts({
  chart,
  minutes,
  base,
  csv,
  zone,
  size,
}: {
  chart: WorkspaceSamples;
  minutes: number;
  base: string;
  /** The figures as a file. */
  csv: string;
  zone: string;
  /** The size of the workspace; null: the launcher's own limit. */
  size: WorkspaceView["size"];
}) {
  const given = size && (size.runsWith ?? size);
  const limit = (value: number | undefined) => (value === undefined ? [] : [{ value, label: "limit" }]);
  const width = Math.max(30_000, (minutes * 60_000) / 240);
  const bins = <T extends { at: string }>(points: T[], values: (point: T) => Bin["values"]): Bin[] =>
    points.map((point) => ({
      from: point.at,
      to: new Date(Date.parse(point.at) + width).toISOString(),
      values: values(point),
    }));
  const frame = { from: chart.from, to: chart.to, zone };
  return (
    <Section
      title="Use"
      detail="All processes and leases of the workspace, kept for one day"
      actions={
        <nav aria-label="Stretch of time" className="flex gap-1 text-sm">
          {RANGES.map(([value, label]) => (
            <Link
              key={value}
              href={`${base}?minutes=${value}`}
              scroll={false}
              aria-current={value === minutes ? "true" : undefined}
              className={cx(
                "rounded-md px-2 py-1",
                value === minutes ? "bg-accent-soft font-medium" : "hover:bg-hover",
              )}
            >
              {label}
            </Link>
          ))}
        </nav>
      }
    >
      {chart.samples.length + chart.gpu.length === 0 ? (
        <Card className="px-3.5 py-3 text-ink-2">
          Nothing was measured in this time. The first figures come half a minute after a start.
        </Card>
      ) : (
        <Card className="grid gap-x-8 gap-y-6 px-3.5 py-3 md:grid-cols-2">
          <div className={CHART}>
            <h3 className="mb-2 font-medium">CPU</h3>
            <TimeChart
              {...frame}
              label={`CPU in cores over the last ${minutes} minutes`}
              series={[{ key: "cpuMilli", label: "CPU", look: "used" }]}
              bins={bins(chart.samples, ({ cpuMilli }) => ({ cpuMilli }))}
              // A workspace at rest is no mountain.
              highest={100}
              limits={limit(given?.cpuMilli)}
              format={formatCores}
              mark={(milli, step) => `${formatMark(milli / 1000, step / 1000)} cores`}
            />
          </div>
          <div className={CHART}>
            <h3 className="mb-2 font-medium">Memory</h3>
            <TimeChart
              {...frame}
              label={`Memory over the last ${minutes} minutes`}
              series={[{ key: "memoryBytes", label: "Memory", look: "used" }]}
              bins={bins(chart.samples, ({ memoryBytes }) => ({ memoryBytes }))}
              limits={limit(given?.memoryBytes)}
              format={formatBytes}
              base={1024}
            />
          </div>
          {chart.gpu.length > 0 && (
            <>
              <div className={CHART}>
                <h3 className="mb-2 font-medium">GPU</h3>
                <TimeChart
                  {...frame}
                  label={`GPUs held and computed on over the last ${minutes} minutes`}
                  series={[
                    { key: "used", label: "GPU time", look: "used" },
                    { key: "idle", label: "held, idle", look: "held" },
                  ]}
                  bins={bins(chart.gpu, ({ heldMilli, usedMilli }) => ({
                    used: usedMilli,
                    idle: heldMilli - usedMilli,
                  }))}
                  format={(milli) => `${formatAmount(Math.round(milli))} GPUs`}
                  mark={(milli, step) => `${formatMark(milli / 1000, step / 1000)} GPUs`}
                />
              </div>
              <div className={CHART}>
                <h3 className="mb-2 font-medium">GPU memory</h3>
                <TimeChart
                  {...frame}
                  label={`Device memory over the last ${minutes} minutes`}
                  series={[{ key: "memoryBytes", label: "GPU memory", look: "used" }]}
                  bins={bins(chart.gpu, ({ memoryBytes }) => ({ memoryBytes }))}
                  format={formatBytes}
                  base={1024}
                />
              </div>
            </>
          )}
          <div className="md:col-span-2">
            <BehindChart csv={csv}>
              <SampleTable chart={chart} />
            </BehindChart>
          </div>
        </Card>
      )}
    </Section>
  );
}
