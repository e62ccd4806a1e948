/** Why a pod has no node yet, as a sentence with what helps. */
import type { V1Node, V1Pod, V1PodCondition } from "@kubernetes/client-node";
import { formatAmount, readAmount } from "./amount.ts";
import { isMeantFor, type Places } from "./eligible.ts";
import { type Missing, missingOf, type Room } from "./missing.ts";
import { requestOf } from "./pod-requests.ts";
import { firstSentence, resourceName } from "./words.ts";

const NO_VOLUME =
  /unbound immediate PersistentVolumeClaims|available persistent volumes to bind|persistentvolumeclaim "\S+" not found/;
/** Of nodes that cannot use a volume which is there: what Kubernetes writes now, and wrote before. */
const VOLUME_ELSEWHERE = /didn't match PersistentVolume's node affinity|had volume node affinity conflict/;
/** What a number of nodes lacks, also places for pods, of which the scheduler writes no name. */
const LACKING = /(\d+) (?:Insufficient ([\w./-]*\w)|Too many pods)/g;
const PLACES = "pods";

/** Whether the scheduler has found no node for it. */
export const isUnscheduled = (pod: V1Pod): boolean => conditionOf(pod) !== undefined;

/** Whether its scheduler waits for a volume. */
export function waitsForVolume(pod: V1Pod): boolean {
  return NO_VOLUME.test(messageOf(pod));
}

function conditionOf(pod: V1Pod): V1PodCondition | undefined {
  return pod.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "False");
}

const messageOf = (pod: V1Pod): string => conditionOf(pod)?.message ?? "";

/** A volume that cannot be had: what is said of it; `use`: what it is for, where that is known. */
export function volumeSentence(message: string, use = "the home folder or a dataset"): string {
  return `The volume for ${use} is not there yet: ${firstSentence(message)}. If this stays, an admin checks the storage class and its free space.`;
}

/** Whether it lacks something of which a node would have enough, if others there left it. */
export function lacksRoom(pod: V1Pod, nodes: readonly V1Node[]): boolean {
  return lackingOf(pod, nodes).some(({ name, most }) => name !== PLACES && most === undefined);
}

/** What it waits for. `nodes`: with them it says when it asks for more than any of them has; `room`: else how much is missing. */
export function unscheduledSentence(pod: V1Pod, nodes: readonly V1Node[] = [], room?: Room): string {
  const message = messageOf(pod);
  if (waitsForVolume(pod)) return volumeSentence(message);
  const bound = VOLUME_ELSEWHERE.test(message);
  const lacking = lackingOf(pod, nodes, room?.volumes);
  const why = reasonsOf(pod, message, { lacking, bound }).join("; ");
  if (bound && why === "")
    return "No node can use the volumes of this workspace: the node where its files lie is gone, or they lie on several. It starts when that node is back; an admin knows when that will be.";
  const [place, there] = bound
    ? ["The node where this workspace's files lie has no room for it", " there"]
    : ["No node has room for this workspace", ""];
  const names = lacking.flatMap(({ name, most }) => (most === undefined ? [name] : []));
  const missing = room === undefined ? [] : missingOf(pod, names, nodes, room);
  const short = missingSentence(missing, bound ? "That node" : "The node with the most left for it");
  if (lacking.some(({ most }) => most !== undefined))
    return `${place}: ${why}.${short} It cannot start like this: choose a smaller size, or ask an admin for a larger node.`;
  return `${place}: ${why || firstSentence(message)}.${short} It starts when there is room${there}; a smaller size, or a stopped workspace${there}, helps at once.`;
}

/** A resource that is short; `most`: what the largest node has, where nothing helps because it is less than is asked for. */
type Lacking = { name: string; count: string; asked: number; most: number | undefined };

function lackingOf(pod: V1Pod, nodes: readonly V1Node[], volumes?: Places): Lacking[] {
  const meant = nodes.filter((node) => isMeantFor(node, pod, volumes));
  // What follows is of pods that might be ended for it, and may name the same once more.
  const [said = ""] = messageOf(pod).split(" preemption: ");
  return [...said.matchAll(LACKING)].map(([, count = "", name = PLACES]) => {
    const asked = requestOf(pod, name);
    const amounts = meant.flatMap(({ status }) => status?.allocatable?.[name] ?? []).map(readAmount);
    const largest = Math.max(...amounts);
    return { name, count, asked, most: amounts.length > 0 && largest < asked ? largest : undefined };
  });
}

function reasonsOf(pod: V1Pod, message: string, { lacking, bound }: { lacking: readonly Lacking[]; bound: boolean }) {
  const nodes = Number(/^\d+\/(\d+) nodes/.exec(message)?.[1] ?? 0);
  // The files lie on one node; the others that lack it do not matter.
  const where = (count: string) => (bound ? "" : ` on ${count} of ${nodes} ${nodes === 1 ? "node" : "nodes"}`);
  const amounts = lacking.filter(({ name }) => name !== PLACES);
  const short = amounts.map(({ name, count, asked, most }) => {
    const wanted =
      asked === 0 ? "" : ` (it asks for ${formatAmount(name, asked, Math.ceil)}${largestNode(name, asked, most)})`;
    return `${resourceName(name)}${wanted}${where(count)}`;
  });
  const reasons: string[] = short.length === 0 ? [] : [`too little ${short.join(" and ")}`];
  for (const { name, count } of lacking) if (name === PLACES) reasons.push(`no place for one more pod${where(count)}`);
  if (/didn't match Pod's node affinity\/selector/.test(message)) {
    const selector = Object.entries(pod.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
    reasons.push(`no node has the label ${selector.join(", ") || "that its size asks for"}`);
  }
  const taint = /had untolerated taint(?:\(s\))?(?: \{([^}]*)\})?/.exec(message);
  if (taint !== null) reasons.push(`nodes are kept for others${taint[1] === undefined ? "" : ` (${taint[1].trim()})`}`);
  if (/were unschedulable/.test(message)) reasons.push("nodes are being drained");
  return reasons;
}

function largestNode(name: string, asked: number, most: number | undefined): string {
  if (most === undefined) return "";
  const missing = formatAmount(name, asked - most, Math.ceil);
  return `, and the largest node has ${formatAmount(name, most, Math.floor)}, so ${missing} ${isOrAre([missing])} missing`;
}

/** With a space before it; that a place for a pod is missing is said as a reason. */
function missingSentence(missing: readonly Missing[], node: string): string {
  const amounts = missing.filter(({ name }) => name !== PLACES);
  if (amounts.length === 0) return "";
  const free = amounts.map((each) =>
    each.free > 0 ? amountOf(each.name, each.free, Math.floor) : `no ${resourceName(each.name)}`,
  );
  const more = amounts.map((each) => amountOf(each.name, each.missing, Math.ceil));
  return ` ${node} has ${free.join(" and ")} free, so ${more.join(" and ")} ${isOrAre(more)} missing.`;
}

const amountOf = (name: string, amount: number, round: (value: number) => number): string =>
  `${formatAmount(name, amount, round)}${name === "cpu" ? "" : " of"} ${resourceName(name)}`;

const isOrAre = (amounts: readonly string[]): string =>
  amounts.length === 1 && /^1( |$)/.test(amounts[0] ?? "") ? "is" : "are";
