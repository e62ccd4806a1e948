/** What pods ask for, as the scheduler counts it (its PodRequests), but for those being resized in place: it goes by their status too. */
import type { V1Container, V1Pod } from "@kubernetes/client-node";
import { readAmount } from "./amount.ts";

/** Of one resource; of `pods` each asks for one. */
export function requestOf({ spec }: V1Pod, name: string): number {
  if (name === "pods") return 1;
  const of = ({ resources }: Pick<V1Container, "resources">) => readAmount(resources?.requests?.[name]);
  const overhead = readAmount(spec?.overhead?.[name]);
  if (spec?.resources?.requests?.[name] !== undefined) return of(spec) + overhead;
  // Init containers run one after another before the others; those that are to be restarted go on beside what follows.
  let [beside, most] = [0, 0];
  for (const init of spec?.initContainers ?? []) {
    if (init.restartPolicy === "Always") beside += of(init);
    else most = Math.max(most, beside + of(init));
  }
  const together = (spec?.containers ?? []).reduce((sum, container) => sum + of(container), beside);
  return Math.max(together, most) + overhead;
}

/** Of all that it asks for. */
export function requestsOf(pod: V1Pod): Map<string, number> {
  const { overhead, resources, initContainers = [], containers = [] } = pod.spec ?? { containers: [] };
  const asked = [
    overhead,
    ...[{ resources }, ...initContainers, ...containers].map((each) => each.resources?.requests),
  ];
  const names = new Set(["pods", ...asked.flatMap((requests) => Object.keys(requests ?? {}))]);
  return new Map([...names].map((name) => [name, requestOf(pod, name)]));
}
