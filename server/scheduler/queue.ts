/** The queue of one GPU type: what happens to each that waits. */
import { type Found, Pass } from "./pass.ts";
import { byAge } from "./team-state.ts";
import type { Round, Verdict, Waiting, World } from "./types.ts";

/** Verdicts for the whole queue in the order of need, and what has to be taken back for it. Applying all is safe. */
export function evaluate(world: World): Round {
  const work = evaluating(world);
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** The same in steps of some milliseconds each: between two of them others may have their turn. */
function* evaluating(given: World): Generator<void, Round> {
  const world = eachOnce(given);
  let found: Found = { revisions: new Map() };
  // Who mattered in any pass does.
  const bearing = new Set<string>();
  for (;;) {
    const outcome = yield* new Pass(world, bearing, found).run();
    if ("round" in outcome) return outcome.round;
    ({ found } = outcome);
  }
}

/** One request is one place, however often it was sent. */
function eachOnce(world: World): World {
  const ids = new Set(world.queue.map(({ requestId }) => requestId));
  if (ids.size === world.queue.length) return world;
  return { ...world, queue: world.queue.filter(({ requestId }) => ids.delete(requestId)) };
}

/** Whether a round leaves everything as it is: everybody waits on, nobody is told anything. */
export function isSettled(round: Round): boolean {
  const { verdicts, notices, withdrawn, kept } = round;
  const waits = verdicts.every((verdict) => verdict.state === "queued");
  return waits && notices.length === 0 && withdrawn.length === 0 && kept.length === 0;
}

/** A world that has been looked at, with what that found. */
export type Judged = { world: World; verdicts: readonly Verdict[] };

/** The verdicts, and the world with what makes questions about it cheap. */
export function judged(world: World): Judged {
  return judgedBy(evaluate(world), world);
}

/** The same, where others wait for their turn meanwhile: `rest` lets them have it. */
export async function judgedBeside(world: World, rest: () => Promise<unknown>): Promise<Judged> {
  const work = evaluating(world);
  for (;;) {
    const step = work.next();
    if (step.done === true) return judgedBy(step.value, world);
    await rest();
  }
}

const judgedBy = ({ verdicts, bearing }: Round, world: World): Judged => ({ world: { ...world, bearing }, verdicts });

/** The verdicts alone. */
export function evaluateQueue(world: World): Verdict[] {
  return evaluate(world).verdicts;
}

/** Decides one new request behind everybody who waits already. Does not judge those ahead anew for their own sake. */
export function decide(request: Waiting, world: World): Verdict {
  const others = world.queue.filter((waiting) => waiting.requestId !== request.requestId);
  const verdict = evaluateQueue({ ...world, queue: [...others, request] }).find(
    (candidate) => candidate.requestId === request.requestId,
  );
  if (verdict === undefined) throw new Error("a judged request has a verdict");
  return verdict;
}

/** Oldest first; the id breaks ties the same way everywhere. */
export function inOrder(queue: Waiting[]): Waiting[] {
  return [...queue].sort(byAge);
}
