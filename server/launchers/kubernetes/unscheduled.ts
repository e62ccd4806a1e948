/** Why a pod has no node yet, as a sentence with what helps. */
import type { V1Node, V1Pod, V1PodCondition } from "@kubernetes/client-node";
import { formatAmount, readAmount } from "./amount.ts";
import { isMeantFor, type Places } from "./eligible.ts";
import { beyondAll, type Missing, missingOf, type Room } from "./missing.ts";
import { requestOf } from "./pod-requests.ts";
import { firstSentence, resourceName } from "./words.ts";

const NO_VOLUME =
  /unbound immediate PersistentVolumeClaims|available persistent volumes to bind|persistentvolumeclaim "\S+" not found/;
/** Of nodes that cannot use a volume which is there: what Kubernetes writes now, and wrote before. */
const VOLUME_ELSEWHERE = /didn't match PersistentVolume's node affinity|had volume node affinity conflict/;
/** What a number of nodes lacks, also places for pods, of which the scheduler writes no name. */
const LACKING = /(?<!\d)(\d+) (?:Insufficient ([\w./-]*\w)|Too many pods)/g;
/** The resource that says how many pods a node takes. */
const POD_SLOTS = "pods";

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

/** Whether it takes what pods hold on nodes, or where its volumes can be used, to say how much it lacks. */
export function lacksRoom(pod: V1Pod, nodes: readonly V1Node[]): boolean {
  const lacking = lackingOf(pod, meantFor(pod, nodes));
  const tied = VOLUME_ELSEWHERE.test(messageOf(pod));
  return lacking.some(({ name, beyond }) => name !== POD_SLOTS && (tied || beyond === undefined));
}

/** What it waits for. `nodes`: with them it says when it asks for more than any of them has; `room`: else how much is missing. */
export function unscheduledSentence(pod: V1Pod, nodes: readonly V1Node[] = [], room?: Room): string {
  const message = messageOf(pod);
  if (waitsForVolume(pod)) return volumeSentence(message);
  const tied = VOLUME_ELSEWHERE.test(message);
  const meant = meantFor(pod, nodes, room?.volumes);
  const lacking = lackingOf(pod, meant);
  const why = reasonsOf(pod, message, { lacking, meant, tied }).join("; ");
  if (tied && why === "")
    return "No node can use the volumes of this workspace: the node where its files lie is gone, or they lie on several. It starts when that node is back; an admin knows when that will be.";
  const { place, there, most } = tied
    ? { ...nodesOfVolumes(room && meant.length), there: " there" }
    : { place: "No node has room for this workspace", there: "", most: THE_MOST };
  const names = lacking.flatMap(({ name, beyond }) => (beyond === undefined ? [name] : []));
  const missing = room === undefined ? [] : missingOf(pod, names, nodes, room);
  const short = missingSentence(missing, most);
  if (lacking.some(({ beyond }) => beyond !== undefined))
    return `${place}: ${why}.${short} It cannot start like this: choose a smaller size, or ask an admin for a larger node.`;
  return `${place}: ${why || firstSentence(message)}.${short} It starts when there is room${there}; a smaller size, or a stopped workspace${there}, helps at once.`;
}

const THE_MOST = "The node with the most left for it";

/** What is said of the nodes that can use its volumes, and of the best of them; `count`: where it is known. */
function nodesOfVolumes(count: number | undefined): { place: string; most: string } {
  if (count === 1) return { place: "The node where this workspace's files lie has no room for it", most: "That node" };
  if (count === undefined || count === 0)
    return { place: "No node that can use this workspace's volumes has room for it", most: THE_MOST };
  return {
    place: `None of the ${count} nodes that can use this workspace's volumes has room for it`,
    most: "The one with the most left for it",
  };
}

const meantFor = (pod: V1Pod, nodes: readonly V1Node[], volumes?: Places): V1Node[] =>
  nodes.filter((node) => isMeantFor(node, pod, volumes));

/**
 * A resource that is short; `count`: on how many nodes, where the scheduler says so; `beyond`: what lacks of it on the
 * node that comes closest, where nothing helps because no node is large enough for all that is asked for.
 */
type Lacking = { name: string; count: string | undefined; asked: number; beyond: Missing | undefined };

function lackingOf(pod: V1Pod, meant: readonly V1Node[]): Lacking[] {
  // What follows is of pods that might be ended for it, and may name the same once more.
  const [said = ""] = messageOf(pod).split(" preemption: ");
  const counts = new Map([...said.matchAll(LACKING)].map(([, count = "", name = POD_SLOTS]) => [name, count]));
  if (counts.size === 0) return [];
  const beyond = new Map(beyondAll(pod, meant).map((each) => [each.name, each]));
  return [...new Set([...counts.keys(), ...beyond.keys()])].map((name) => ({
    ...{ name, count: counts.get(name), asked: requestOf(pod, name), beyond: beyond.get(name) },
  }));
}

type Short = { lacking: readonly Lacking[]; meant: readonly V1Node[]; tied: boolean };

function reasonsOf(pod: V1Pod, message: string, { lacking, meant, tied }: Short): string[] {
  const nodes = Number(/^\d+\/(\d+) nodes/.exec(message)?.[1] ?? 0);
  // Its volumes are on some of the nodes; the others that lack it do not matter.
  const where = (count: string | undefined) =>
    tied || count === undefined ? "" : ` on ${count} of ${nodes} ${nodes === 1 ? "node" : "nodes"}`;
  const amounts = lacking.filter(({ name }) => name !== POD_SLOTS);
  const short = amounts.map(({ name, count, asked, beyond }) => {
    const amount = formatAmount(name, asked, Math.ceil);
    const wanted =
      amount === undefined ? "" : ` (it asks for ${amount}${beyond === undefined ? "" : closestNode(beyond, meant)})`;
    return `${resourceName(name)}${wanted}${where(count)}`;
  });
  const reasons: string[] = short.length === 0 ? [] : [`too little ${short.join(" and ")}`];
  for (const { name, count } of lacking)
    if (name === POD_SLOTS) reasons.push(`no place for one more pod${where(count)}`);
  if (/didn't match Pod's node affinity\/selector/.test(message)) {
    const selector = Object.entries(pod.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
    reasons.push(`no node has the label ${selector.join(", ") || "that its size asks for"}`);
  }
  const taint = /had untolerated taint(?:\(s\))?(?: \{([^}]*)\})?/.exec(message);
  if (taint !== null) reasons.push(`nodes are kept for others${taint[1] === undefined ? "" : ` (${taint[1].trim()})`}`);
  if (/were unschedulable/.test(message)) reasons.push("nodes are being drained");
  return reasons;
}

/** Of one resource; the node that lacks least of all together may not be the largest of each. */
function closestNode({ name, free, missing }: Missing, meant: readonly V1Node[]): string {
  const most = Math.max(...meant.map(({ status }) => readAmount(status?.allocatable?.[name])));
  if (formatAmount(name, most, Math.floor) === undefined) return ", and no node has any";
  const node = most <= free ? "the largest node" : "the node that comes closest";
  const lacks = formatAmount(name, missing, Math.ceil) ?? "0";
  return `, and ${node} has ${formatAmount(name, free, Math.floor) ?? "none"}, so ${lacks} ${isOrAre([lacks])} missing`;
}

/** With a space before it; that a place for a pod is missing is said as a reason. */
function missingSentence(missing: readonly Missing[], node: string): string {
  const amounts = missing.filter(({ name }) => name !== POD_SLOTS);
  if (amounts.length === 0) return "";
  const free = amounts.map((each) => amountOf(each.name, Math.max(0, each.free), Math.floor));
  const more = amounts.map((each) => amountOf(each.name, each.missing, Math.ceil));
  return ` ${node} has ${free.join(" and ")} free, so ${more.join(" and ")} ${isOrAre(more)} missing.`;
}

function amountOf(name: string, amount: number, round: (value: number) => number): string {
  const written = formatAmount(name, amount, round);
  if (written === undefined) return `no ${resourceName(name)}`;
  return `${written}${name === "cpu" ? "" : " of"} ${resourceName(name)}`;
}

const isOrAre = (amounts: readonly string[]): string =>
  amounts.length === 1 && /^1( |$)/.test(amounts[0] ?? "") ? "is" : "are";
