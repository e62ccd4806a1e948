import { Remaining } from "#components/ui/time.tsx";

export type Ending = {
  /** Its time limit. */
  expiresAt: string;
  /** Its idle limit, if its GPU stays idle; null: unknown. */
  idleEndsAt: string | null;
  /** When it is reclaimed; null: it stays until one of its limits. */
  releaseAt: string | null;
};

/** When it is taken back; null where its time is up by then. */
export const takenBackAt = ({ expiresAt, releaseAt }: Ending): string | null =>
  releaseAt !== null && releaseAt < expiresAt ? releaseAt : null;

/** When it reaches its idle limit; null where another end comes first. */
export const idleEndOf = (lease: Ending): string | null =>
  takenBackAt(lease) === null && lease.idleEndsAt !== null && lease.idleEndsAt < lease.expiresAt
    ? lease.idleEndsAt
    : null;

/** When it ends first, as things stand. */
export const endOf = (lease: Ending): string => takenBackAt(lease) ?? idleEndOf(lease) ?? lease.expiresAt;

/**
 * Each limit with its name: `idle limit in 19 min, time limit in 3 h 59 min`; or `taken back in 2 min` after
 * a reclaim notice. `rows`: one below the other, for a table.
 */
export function EndsIn({ lease, rows = false }: { lease: Ending; rows?: boolean }) {
  const takenBack = takenBackAt(lease);
  if (takenBack !== null) {
    return (
      <span className="text-warn">
        taken back in <Remaining until={takenBack} />
      </span>
    );
  }
  const idle = idleEndOf(lease);
  return (
    <>
      {idle !== null && (
        <span className={rows ? "block whitespace-nowrap" : "whitespace-nowrap"}>
          idle limit in <Remaining until={idle} />
          {!rows && ", "}
        </span>
      )}
      <span className={rows ? "block whitespace-nowrap" : "whitespace-nowrap"}>
        time limit in <Remaining until={lease.expiresAt} />
      </span>
    </>
  );
}
