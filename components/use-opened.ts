"use client";

import { type SyntheticEvent, useState } from "react";

/**
 * Whether a `<details>` with these properties has ever been open, so that what is in it is made then: most visits leave
 * it closed.
 */
export function useOpened(begins = false) {
  const [opened, setOpened] = useState(begins);
  const look = (details: HTMLDetailsElement | null) => {
    if (details?.open) setOpened(true);
  };
  // It may have been opened before the page could hear of it: hence the ref.
  const watch = { ref: look, onToggle: (event: SyntheticEvent<HTMLDetailsElement>) => look(event.currentTarget) };
  return { opened, watch };
}
