import { TimeChart } from "#components/chart/time-chart.tsx";
import { formatGpuHours, formatMark } from "#components/format.ts";
import { Card, Section } from "#components/ui/page.tsx";
import type { OwnUse as Use } from "#server/services/lease/own-use.ts";

/** Utilization of the person's own GPUs in the last day. Empty without a lease in that time. */
export function OwnUse({ use, zone }: { use: Use; zone: string }) {
  if (use.bins.every(({ used, idle }) => used + idle === 0)) return null;
  return (
    <Section title="GPU utilization" detail="Your GPUs in the last 24 hours, on average">
      <Card className="px-3.5 py-3">
        <TimeChart
          label="Your GPUs over the last 24 hours: computing, and held idle"
          series={[
            { key: "used", label: "computing", look: "used" },
            { key: "idle", label: "held, idle", look: "held" },
          ]}
          {...{ from: use.from, to: use.to, zone }}
          bins={use.bins.map(({ from, to, used, idle }) => ({ from, to, values: { used, idle } }))}
          format={(value) => `${formatGpuHours(value)} GPUs`}
          mark={(value, step) => `${formatMark(value, step)} GPUs`}
        />
      </Card>
    </Section>
  );
}
