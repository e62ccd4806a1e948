/** On which nodes a pod may run by what they and it say, whatever it asks for. */
import type {
  V1Node,
  V1NodeSelector,
  V1NodeSelectorRequirement,
  V1Pod,
  V1Taint,
  V1Toleration,
} from "@kubernetes/client-node";

/** Where each volume of a pod can be used; undefined for anywhere. */
export type Places = readonly (V1NodeSelector | undefined)[];

/** Taints that a node has while something is the matter with it or it is removed: Kubernetes' own, */
const PASSING_TAINTS = [
  /^node\.(cloudprovider\.)?kubernetes\.io\//,
  // those of the Cluster Autoscaler and of Karpenter,
  /^(ToBeDeletedBy|DeletionCandidateOf)ClusterAutoscaler$/,
  /^karpenter\.sh\/(disrupted|disruption|unregistered)$/,
  // and those of networks and storage drivers whose part on the node is not there yet: Cilium, ebs.csi.aws.com.
  /\/agent-not-ready$/,
];

/** Whether a node's kubelet tells the cluster that it is there. */
export function answers(node: V1Node): boolean {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  return ready === undefined || ready.status === "True";
}

/** Whether a node takes the pod now, if it has room. */
export function isOpenTo(node: V1Node, pod: V1Pod, volumes: Places = []): boolean {
  const open = answers(node) && node.spec?.unschedulable !== true;
  return open && isMeantFor(node, pod, volumes) && (node.spec?.taints ?? []).every((taint) => isTolerated(taint, pod));
}

/** Whether it takes the pod at other times, should it be drained or silent now. */
export function isMeantFor(node: V1Node, pod: V1Pod, volumes: Places = []): boolean {
  const labels = node.metadata?.labels ?? {};
  const selected = Object.entries(pod.spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
  const lasting = (node.spec?.taints ?? []).filter(({ key }) => !PASSING_TAINTS.some((one) => one.test(key)));
  return selected && lasting.every((taint) => isTolerated(taint, pod)) && volumes.every((where) => admits(where, node));
}

function isTolerated({ key, value, effect }: V1Taint, { spec }: V1Pod): boolean {
  if (effect === "PreferNoSchedule") return true;
  return (spec?.tolerations ?? []).some((one: V1Toleration) => {
    if (one.effect !== undefined && one.effect !== effect) return false;
    if (one.operator === "Exists") return one.key === undefined || one.key === key;
    return one.key === key && (one.value ?? "") === (value ?? "");
  });
}

/** Whether a volume can be used on a node: one of its terms has to hold, and of that everything; an empty one never does. */
export function admits(selector: V1NodeSelector | undefined, node: V1Node): boolean {
  if (selector === undefined) return true;
  const labels = node.metadata?.labels ?? {};
  const fields = { "metadata.name": node.metadata?.name ?? "" };
  return selector.nodeSelectorTerms.some(
    ({ matchExpressions = [], matchFields = [] }) =>
      matchExpressions.length + matchFields.length > 0 &&
      matchExpressions.every((one) => holds(one, labels)) &&
      matchFields.every((one) => holds(one, fields)),
  );
}

function holds({ key, operator, values = [] }: V1NodeSelectorRequirement, of: Record<string, string>): boolean {
  const value = of[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return Number(value) > Number(values[0]);
    case "Lt":
      return Number(value) < Number(values[0]);
    default:
      return false;
  }
}
