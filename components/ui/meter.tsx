import { cx } from "#components/format.ts";

export type Segment = {
  key: string;
  value: number;
  look: SegmentLook;
  title?: string;
};

/**
 * `used` is solid, `borrowed` striped, `held` pale. Where parts have names, `ink` and its patterns tell more apart, and
 * `rest` is all others: by strength and pattern, as accent and ink are one grey to who does not see their hues.
 */
export type SegmentLook = "used" | "borrowed" | "held" | "ink" | "ink-dotted" | "ink-barred" | "rest";

const looks: Record<SegmentLook, string> = {
  used: "bg-accent",
  borrowed: "bg-accent stripes",
  held: "bg-accent/45",
  ink: "bg-ink",
  "ink-dotted": "bg-ink-2 dots",
  "ink-barred": "bg-ink-2 uprights",
  rest: "bg-sunken mesh",
};

/** The look of a segment beside its name. */
export function Swatch({ look }: { look: SegmentLook }) {
  return <span aria-hidden="true" className={cx("inline-block size-2.5 shrink-0 rounded-[2px]", looks[look])} />;
}

/**
 * A bar of segments on a track from 0 to `max`, with marks (such as the guaranteed amount) across it.
 * The picture repeats what the text beside it says, so `label` carries everything for a screen reader.
 */
export function Meter({
  segments,
  max,
  marks = [],
  label,
  size = "md",
}: {
  segments: Segment[];
  max: number;
  marks?: { at: number; title: string }[];
  label: string;
  size?: "sm" | "md" | "lg";
}) {
  const share = (value: number) => `${max > 0 ? Math.min(100, (value / max) * 100) : 0}%`;
  return (
    <div
      role="img"
      aria-label={label}
      className={cx(
        "relative w-full rounded-sm border border-line bg-sunken",
        size === "sm" ? "h-2" : size === "md" ? "h-3.5" : "h-6",
      )}
    >
      <div className="absolute inset-0 flex gap-px overflow-hidden rounded-[2px]">
        {segments
          .filter((segment) => segment.value > 0)
          .map((segment) => (
            <div
              key={segment.key}
              title={segment.title}
              className={cx("h-full", looks[segment.look])}
              style={{ width: share(segment.value) }}
            />
          ))}
      </div>
      {marks.map((mark) => (
        <div
          key={mark.title}
          title={mark.title}
          className="absolute -top-1 -bottom-1 w-0.5 -translate-x-1/2 bg-ink"
          style={{ left: share(mark.at) }}
        />
      ))}
    </div>
  );
}
