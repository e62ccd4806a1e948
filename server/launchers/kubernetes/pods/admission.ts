/** What the API server asks before it takes a labelled pod, and what it is answered (admission.k8s.io/v1). Pure. */
import type { V1Pod } from "@kubernetes/client-node";
import { z } from "zod";
import { borrowingPod, isBorrowing, obstacle, type Surroundings } from "./borrowing-pod.ts";
import { asksForGpu, wishOf } from "./wish.ts";

/** As much of a review as is looked at. */
export const admissionReview = z.object({
  apiVersion: z.literal("admission.k8s.io/v1"),
  kind: z.literal("AdmissionReview"),
  request: z.object({
    uid: z.string(),
    namespace: z.string(),
    object: z.object({
      metadata: z.object({
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      }),
      spec: z.looseObject({ containers: z.array(z.looseObject({ name: z.string() })) }),
    }),
  }),
});
export type AdmissionReview = z.infer<typeof admissionReview>;

export type AdmissionAnswer = {
  apiVersion: "admission.k8s.io/v1";
  kind: "AdmissionReview";
  response: {
    uid: string;
    allowed: boolean;
    status?: { code: number; message: string };
    patchType?: "JSONPatch";
    /** Base64 of a JSON patch. */
    patch?: string;
  };
};

/** Lets a pod in as it is, changed, or not, with the reason. */
export function admit({ request }: AdmissionReview, around: Surroundings): AdmissionAnswer {
  const answer = (response: Omit<AdmissionAnswer["response"], "uid">): AdmissionAnswer => ({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid: request.uid, ...response },
  });
  const refuse = (message: string) => answer({ allowed: false, status: { code: 422, message: `Sluice: ${message}` } });
  const pod = request.object as V1Pod;
  const labels = request.object.metadata.labels ?? {};
  if (!asksForGpu(labels) || isBorrowing(pod)) return answer({ allowed: true });
  const asked = wishOf(labels, request.namespace, around.settings);
  if (!asked.ok) return refuse(asked.message);
  const problem = obstacle(pod);
  if (problem !== undefined) return refuse(problem);
  const patch = JSON.stringify(patchOf(borrowingPod(pod, asked.wish, around)));
  return answer({ allowed: true, patchType: "JSONPatch", patch: Buffer.from(patch).toString("base64") });
}

/** `add` sets a member that is there already, too. */
function patchOf({ metadata, spec }: V1Pod) {
  return [
    { op: "add", path: "/metadata/labels", value: metadata?.labels ?? {} },
    { op: "add", path: "/metadata/annotations", value: metadata?.annotations ?? {} },
    { op: "add", path: "/spec/volumes", value: spec?.volumes },
    { op: "add", path: "/spec/initContainers", value: spec?.initContainers },
    { op: "add", path: "/spec/containers", value: spec?.containers },
    ...(spec?.imagePullSecrets === undefined
      ? []
      : [{ op: "add", path: "/spec/imagePullSecrets", value: spec.imagePullSecrets }]),
  ];
}
