import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { read } from "./read.ts";

/** With the seconds that a part may take to answer, an open page knows within a quarter of a minute. */
const EVERY_MS = 5_000;

/**
 * Calls `onChange` when a part has begun or ceased to work, until the returned function is called; after the first look,
 * too, as what its reader has seen is not known here. The parts are asked, since one that is dead tells nothing.
 */
export function watchHealth(db: Database, onChange: () => void, everyMs = EVERY_MS): () => void {
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  let known: string | undefined;
  const look = async () => {
    const { components } = await read(systemContext(db));
    const states = JSON.stringify(components.map(({ kind, name, state }) => [kind, name, state]));
    if (states === known || over) return;
    known = states;
    onChange();
  };
  const again = () => {
    if (over) return;
    // Without a database there is no page either; it is looked again.
    timer = setTimeout(() => void look().then(again, again), everyMs);
    timer.unref();
  };
  again();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
