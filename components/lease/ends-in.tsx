import { Remaining } from "#components/ui/time.tsx";

export type Ending = {
  expiresAt: string;
  /** When it is taken back; null: it stays until its time is up. */
  releaseAt: string | null;
};

/** When it is taken back; null where its time is up by then. */
export const takenBackAt = ({ expiresAt, releaseAt }: Ending): string | null =>
  releaseAt !== null && releaseAt < expiresAt ? releaseAt : null;

/** When it ends, as things stand. */
export const endOf = (lease: Ending): string => takenBackAt(lease) ?? lease.expiresAt;

/** `ends in 48 min`, or `taken back in 2 min` for one whose holder has been told to go. */
export function EndsIn({ lease, verb = "" }: { lease: Ending; verb?: string }) {
  const takenBack = takenBackAt(lease);
  if (takenBack === null) {
    return (
      <>
        {verb} <Remaining until={lease.expiresAt} />
      </>
    );
  }
  return (
    <span className="text-warn">
      taken back in <Remaining until={takenBack} />
    </span>
  );
}
