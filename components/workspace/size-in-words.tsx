import { sizeInWords } from "#server/contracts/size-words.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** Cores and memory of a workspace, and what its next start changes of that. */
export function SizeInWords({ workspace: { size } }: { workspace: Pick<WorkspaceView, "size"> }) {
  if (size === null) return "as its launcher gives it";
  const { name, runsWith } = size;
  const numbers = name === null ? sizeInWords(size) : `${name} (${sizeInWords(size)})`;
  return runsWith === null ? (
    numbers
  ) : (
    <>
      {sizeInWords(runsWith)}
      <span className="block text-sm text-warn">{numbers} from the next start on</span>
    </>
  );
}
