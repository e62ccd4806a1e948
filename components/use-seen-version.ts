"use client";

import { useState } from "react";

/**
 * The version of a thing as it stood when its form was opened. The page behind an open form follows what others save,
 * and would send their version with what was typed over older values: the conflict would be hidden.
 */
export function useSeenVersion<V>(now: V) {
  const [seen, setSeen] = useState<{ version: V } | undefined>({ version: now });
  return {
    version: seen === undefined ? now : seen.version,
    /** The person was told of the conflict: what stands there now counts. */
    forget: () => setSeen(undefined),
  };
}
