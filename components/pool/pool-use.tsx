"use client";

import { useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { type Bin, TimeChart } from "#components/chart/time-chart.tsx";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Card, Section } from "#components/ui/page.tsx";
import type { Utilisation } from "#server/contracts/utilisation.ts";

const HOURS = 24;

/**
 * How busy the pool was in the last day, in percent of the GPUs in the pool. Read once when the page opens: the page
 * itself is read again with every lease.
 */
export function PoolUse() {
  const zone = useTimeZone();
  const [usage, setUsage] = useState<Utilisation>();
  useEffect(() => {
    let current = true;
    const from = new Date(Date.now() - HOURS * 3_600_000).toISOString();
    const question = new URLSearchParams({ from, limit: "1" });
    void api<Utilisation>("GET", `/utilisation?${question}`).then((answer) => {
      if (current && answer.ok) setUsage(answer.data);
    });
    return () => {
      current = false;
    };
  }, []);
  const bins = usage?.bins.flatMap(percentOf) ?? [];
  if (usage === undefined || bins.length === 0) return null;
  return (
    <Section title="GPU utilization" detail={`Last ${HOURS} hours, percent of the GPUs in the pool`}>
      <Card className="px-3.5 py-3">
        <TimeChart
          label={`GPU utilization over the last ${HOURS} hours`}
          series={[
            { key: "used", label: "computing", look: "used" },
            { key: "idle", label: "held, idle", look: "held" },
          ]}
          {...{ bins, from: usage.from, to: usage.to, zone }}
          highest={100}
          format={(value) => `${Math.round(value)} %`}
        />
      </Card>
    </Section>
  );
}

/** Nothing for a stretch in which the pool had no GPU. */
function percentOf({ from, to, used, heldIdle, free, draining }: Utilisation["bins"][number]): Bin[] {
  const whole = used + heldIdle + free + draining;
  if (whole === 0) return [];
  return [{ from, to, values: { used: (used / whole) * 100, idle: (heldIdle / whole) * 100 } }];
}
