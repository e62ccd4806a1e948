import { formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Select } from "#components/ui/field.tsx";
import { Link } from "#components/ui/link.tsx";
import type { ImageView } from "#server/contracts/image.ts";

type Version = ImageView["versions"][number];

/** Which version of the environment a launch gets: the newest of then, or one that is named. */
export function VersionSelect({
  versions,
  value,
  onChange,
  error,
}: {
  /** Those that the team gets, the newest first. */
  versions: readonly Version[];
  /** Undefined: the newest. */
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  error: string | undefined;
}) {
  const zone = useTimeZone();
  const [newest, ...older] = versions;
  const nameOf = ({ version, approvedAt }: Version) =>
    `${version.slice(0, 12)}, ${approvedAt === null ? "comes with this installation" : `approved ${formatExact(approvedAt, zone).slice(0, 10)}`}`;
  const chosen = older.find(({ id }) => id === value);
  return (
    <Select
      className="sm:max-w-[calc(50%-0.5rem)]"
      label="Version"
      value={chosen?.id ?? ""}
      onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
      hint={
        chosen && (
          <>
            An older one, kept until you update the workspace.{" "}
            <Link href={`/environments/${chosen.id}`} className="underline underline-offset-4">
              What is inside
            </Link>
          </>
        )
      }
      error={error}
    >
      {newest && <option value="">Newest: {nameOf(newest)}</option>}
      {older.map((each) => (
        <option key={each.id} value={each.id}>
          {nameOf(each)}
        </option>
      ))}
    </Select>
  );
}
