"use client";

import type { ReactNode } from "react";
import { cx, formatAmount, plural } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import type { MapRecord } from "./map-record.ts";
import { TeamBar } from "./team-bar.tsx";
import type { TeamKey } from "./team-key.ts";

const looks: Record<string, { word: string; className: string }> = {
  "0": { word: "nothing", className: "fill-line" },
  "1": { word: "up to a quarter", className: "fill-accent/30" },
  "2": { word: "up to a half", className: "fill-accent/55" },
  "3": { word: "up to three quarters", className: "fill-accent/75" },
  "4": { word: "more", className: "fill-accent" },
  d: { word: "draining", className: "fill-warn" },
  l: { word: "not connected", className: "fill-bad" },
};
const COLUMNS = 8;

/** A square a device; what drains is a half one and what is not connected a cross, so that not all hangs on colour. */
const shapes: Record<string, (x: number, y: number) => string> = {
  d: (x, y) => `M${x} ${y + 10}h10v-10z`,
  l: (x, y) => `M${x} ${y + 2}l2-2 3 3 3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3z`,
};
const square = (x: number, y: number) => `M${x} ${y}h10v10h-10z`;

function Cells({ cells }: { cells: string }) {
  const rows = Math.max(1, Math.ceil(cells.length / COLUMNS));
  const [width, height] = [Math.min(COLUMNS, Math.max(1, cells.length)) * 12 - 2, rows * 12 - 2];
  const kinds = [...new Set(cells)];
  return (
    <svg aria-hidden="true" viewBox={`0 0 ${width} ${height}`} width={width} height={height} className="block">
      {kinds.map((kind) => (
        <path
          key={kind}
          className={looks[kind]?.className}
          d={[...cells]
            .map((cell, at) =>
              cell === kind ? (shapes[kind] ?? square)((at % COLUMNS) * 12, Math.floor(at / COLUMNS) * 12) : "",
            )
            .join("")}
        />
      ))}
    </svg>
  );
}

/** What the cells mean. */
export function MapLegend({ shows }: { shows: string }) {
  return (
    <ul
      aria-label={`Each square is a GPU. Its color shows the part that is ${shows}`}
      className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-2"
    >
      {Object.entries(looks).map(([kind, { word }]) => (
        <li key={kind} className="inline-flex items-center gap-1.5">
          <Cells cells={kind} />
          {word}
        </li>
      ))}
    </ul>
  );
}

/**
 * Many servers at once: a tile each with a cell for each device, and a bar of who holds it. A tile is a link that opens the server in place and
 * closes it again; `details` holds what is open.
 */
export function ServerMap({
  servers,
  teamKey,
  details,
  base,
  question,
}: {
  servers: MapRecord[];
  teamKey: TeamKey;
  /** Server id → what stands under its tile. */
  details: Record<string, ReactNode>;
  base: string;
  question: Record<string, string>;
}) {
  const open = Object.keys(details);
  const address = (id: string) => {
    const next = open.includes(id) ? open.filter((each) => each !== id) : [...open, id];
    const all = new URLSearchParams(question);
    if (next.length > 0) all.set("open", next.join(","));
    return all.size === 0 ? base : `${base}?${all.toString()}`;
  };
  return (
    <ul
      aria-label="GPU servers"
      className="grid grid-flow-dense grid-cols-[repeat(auto-fill,minmax(8.5rem,1fr))] gap-1.5"
    >
      {servers.flatMap((server) => {
        const detail = details[server.id];
        const wrong = server.state !== "online";
        return [
          <li key={server.id}>
            <Link
              href={address(server.id)}
              scroll={false}
              aria-expanded={detail !== undefined}
              className={cx(
                "flex h-full flex-col gap-1.5 rounded-md border bg-surface px-2.5 py-2 hover:bg-hover",
                detail === undefined ? "border-line" : "border-accent",
              )}
            >
              <span className="flex items-baseline justify-between gap-2">
                <span className="truncate font-medium">{server.name}</span>
                <span className="figures text-xs whitespace-nowrap text-ink-2">
                  {formatAmount(server.leasedMilli)}
                  <span className="sr-only"> leased</span> of {server.cells.length}
                  <span className="sr-only"> {plural(server.cells.length, "device").replace(/^\d+ /, "")}</span>
                </span>
              </span>
              <Cells cells={server.cells} />
              <TeamBar
                size="sm"
                teams={server.teams}
                teamKey={teamKey}
                max={server.cells.length * 1000}
                what="by team"
              />
              {wrong && <span className="text-xs text-warn">{server.state}</span>}
            </Link>
          </li>,
          ...(detail === undefined
            ? []
            : [
                <li key={`${server.id} open`} className="col-span-full">
                  {detail}
                </li>,
              ]),
        ];
      })}
    </ul>
  );
}
