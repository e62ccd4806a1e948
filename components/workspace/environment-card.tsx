import { cx, formatDuration, plural } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { State } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { ImageView } from "#server/contracts/image.ts";
import { sizesFor } from "#server/contracts/size-words.ts";
import type { SizeView } from "#server/contracts/workspace-size.ts";

const builds = {
  ready: { tone: "ok", word: "ready" },
  building: { tone: "busy", word: "being built; the launch waits for it" },
  pending: { tone: "busy", word: "built at the first launch" },
  failed: { tone: "bad", word: "its build failed" },
} as const;

/** So many older versions stand on a card; the catalogue has all. */
const OLDER = 3;

/** An environment to choose: what it is for, whether it is ready, how long it takes, what is inside, in which sizes, and who says so. */
export function EnvironmentCard({
  image,
  sizes,
  chosen,
  onChoose,
}: {
  image: ImageView;
  /** Those that are offered to the team. */
  sizes: readonly SizeView[];
  chosen: boolean;
  onChoose: () => void;
}) {
  const { version, startSeconds } = image;
  const build = builds[version.buildState];
  return (
    <div
      className={cx(
        "flex flex-col rounded-lg border bg-surface has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent",
        chosen ? "border-accent ring-1 ring-accent" : "border-line-strong",
      )}
    >
      <label className="flex grow cursor-pointer gap-3 rounded-t-lg p-4 pb-2 hover:bg-hover">
        <input
          type="radio"
          name="image"
          value={image.name}
          checked={chosen}
          onChange={onChoose}
          className="mt-1 size-4 shrink-0 accent-accent focus-visible:outline-none"
        />
        <span className="min-w-0">
          <span className="block font-medium">{image.title}</span>
          <span className="mt-0.5 block text-sm text-ink-2">{image.description}</span>
          <span className="figures mt-2 flex flex-wrap gap-x-4 text-sm">
            <State tone={build.tone}>{build.word}</State>
            {startSeconds !== null && (
              <span className="text-ink-2">starts in about {formatDuration(Math.max(1, startSeconds) * 1000)}</span>
            )}
          </span>
          {version.buildState === "failed" && version.buildMessage && (
            <span className="mt-1 block text-sm text-bad">{version.buildMessage}</span>
          )}
        </span>
      </label>
      <div className="figures flex flex-col gap-0.5 px-4 pb-3 pl-11 text-sm text-ink-2">
        <p>
          <Link href={`/environments/${version.id}`} className="text-ink underline underline-offset-4">
            What is inside
          </Link>
          {version.packageCount !== null && `: ${plural(version.packageCount, "package")}`}
        </p>
        <p>Sizes: {sizesFor(sizes, version.atLeast)}</p>
        <Approved approved={version.approved} />
        {image.older.length > 0 && <Older image={image} />}
      </div>
    </div>
  );
}

function Approved({ approved }: Pick<ImageView["version"], "approved">) {
  if (approved === null) return <p>Comes with this installation</p>;
  return (
    <p>
      Approved {approved.by !== null && `by ${approved.by} `}
      <RelativeTime at={approved.at} />
    </p>
  );
}

function Older({ image: { title, older } }: { image: ImageView }) {
  const more = older.length - OLDER;
  return (
    <p>
      Older:{" "}
      {older.slice(0, OLDER).map(({ id, version }, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <Link
            href={`/environments/${id}`}
            aria-label={`${title}, older version ${version.slice(0, 12)}`}
            className="underline underline-offset-4"
          >
            {version.slice(0, 12)}
          </Link>
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </p>
  );
}
