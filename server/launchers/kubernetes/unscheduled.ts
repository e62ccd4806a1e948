/** Why a pod has no node yet, as a sentence with what helps. */
import type { V1Node, V1Pod, V1PodCondition } from "@kubernetes/client-node";
import { readAmount } from "./amount.ts";
import { firstSentence, resourceName } from "./words.ts";

const NO_VOLUME =
  /unbound immediate PersistentVolumeClaims|available persistent volumes to bind|persistentvolumeclaim "\S+" not found/;
/** Of nodes that cannot use a volume which is there: what Kubernetes writes now, and wrote before. */
const VOLUME_ELSEWHERE = /didn't match PersistentVolume's node affinity|had volume node affinity conflict/;

/** Whether the scheduler has found no node for it. */
export const isUnscheduled = (pod: V1Pod): boolean => conditionOf(pod) !== undefined;

/** Whether its scheduler waits for a volume. */
export function waitsForVolume(pod: V1Pod): boolean {
  return NO_VOLUME.test(conditionOf(pod)?.message ?? "");
}

function conditionOf(pod: V1Pod): V1PodCondition | undefined {
  return pod.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "False");
}

/** A volume that cannot be had: what is said of it; `use`: what it is for, where that is known. */
export function volumeSentence(message: string, use = "the home folder or a dataset"): string {
  return `The volume for ${use} is not there yet: ${firstSentence(message)}. If this stays, an admin checks the storage class and its free space.`;
}

/** What it waits for. `nodes`: with them it says when it asks for more than any of them has. */
export function unscheduledSentence(pod: V1Pod, nodes: readonly V1Node[] = []): string {
  const message = conditionOf(pod)?.message ?? "";
  if (waitsForVolume(pod)) return volumeSentence(message);
  const bound = VOLUME_ELSEWHERE.test(message);
  const lacking = lackingOf(pod, message, nodes);
  const why = reasonsOf(pod, message, { lacking, bound }).join("; ");
  if (bound && why === "")
    return "No node can use the volumes of this workspace: the node where its files lie is gone, or they lie on several. It starts when that node is back; an admin knows when that will be.";
  const [place, there] = bound
    ? ["The node where this workspace's files lie has no room for it", " there"]
    : ["No node has room for this workspace", ""];
  if (lacking.some(({ most }) => most !== undefined))
    return `${place}: ${why}. It cannot start like this: choose a smaller size, or ask an admin for a larger node.`;
  return `${place}: ${why || firstSentence(message)}. It starts when there is room${there}; a smaller size, or a stopped workspace${there}, helps at once.`;
}

/** A resource that is short; `most`: what the largest node has, where nothing helps because it is less than is asked for. */
type Lacking = { name: string; count: string; asked: string | undefined; most: string | undefined };

function lackingOf(pod: V1Pod, message: string, nodes: readonly V1Node[]): Lacking[] {
  const requests = pod.spec?.containers[0]?.resources?.requests ?? {};
  return [...message.matchAll(/(\d+) Insufficient ([\w./-]*\w)/g)].map(([, count = "", name = ""]) => {
    const asked = requests[name];
    const amounts = nodes.flatMap(({ status }) => status?.allocatable?.[name] ?? []);
    const [largest] = amounts.sort((a, b) => readAmount(b) - readAmount(a));
    const isLess = largest !== undefined && readAmount(largest) < readAmount(asked);
    return { name, count, asked, most: isLess ? readable(name, largest) : undefined };
  });
}

function reasonsOf(pod: V1Pod, message: string, { lacking, bound }: { lacking: readonly Lacking[]; bound: boolean }) {
  const nodes = Number(/^\d+\/(\d+) nodes/.exec(message)?.[1] ?? 0);
  const short = lacking.map(({ name, count, asked, most }) => {
    const largest = most === undefined ? "" : `, and the largest node has ${most}`;
    const wanted = asked === undefined ? "" : ` (it asks for ${asked}${largest})`;
    // The files lie on one node; the others that lack it do not matter.
    const where = bound ? "" : ` on ${count} of ${nodes} ${nodes === 1 ? "node" : "nodes"}`;
    return `${resourceName(name)}${wanted}${where}`;
  });
  const reasons: string[] = short.length === 0 ? [] : [`too little ${short.join(" and ")}`];
  if (/didn't match Pod's node affinity\/selector/.test(message)) {
    const selector = Object.entries(pod.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
    reasons.push(`no node has the label ${selector.join(", ") || "that its size asks for"}`);
  }
  const taint = /had untolerated taint(?:\(s\))?(?: \{([^}]*)\})?/.exec(message);
  if (taint !== null) reasons.push(`nodes are kept for others${taint[1] === undefined ? "" : ` (${taint[1].trim()})`}`);
  if (/were unschedulable/.test(message)) reasons.push("nodes are being drained");
  return reasons;
}

/** Nodes write their memory in kibibytes. */
function readable(name: string, amount: string): string {
  return name === "memory" ? `${Math.floor((readAmount(amount) / 2 ** 30) * 10) / 10}Gi` : amount;
}
