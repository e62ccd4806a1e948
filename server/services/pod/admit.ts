import { authorize, type Context } from "#server/context.ts";
import { env } from "#server/env.ts";
import {
  type AdmissionAnswer,
  type AdmissionReview,
  admissionReview,
  admit,
} from "#server/launchers/kubernetes/pods/admission.ts";
import { parse } from "#server/parse.ts";
import { podSettings } from "./settings.ts";

/**
 * The cluster's API server asks about a pod with a label that asks for a GPU, which somebody applies: it comes in changed,
 * so that it borrows, or is refused with the reason. The API server shows no credential, and none is needed: this changes
 * nothing, and what a pod may borrow is decided when it shows its account's token. Reasons name teams, so that workspaces
 * do not reach it.
 */
export async function admitReview(ctx: Context, raw: AdmissionReview): Promise<AdmissionAnswer> {
  authorize(ctx.principal, "pod.admit");
  const review = parse(admissionReview, raw);
  const { settings, pods } = await podSettings();
  return admit(review, {
    settings: pods,
    brokerUrl: env().SLUICE_BROKER_URL,
    authority: settings.certificateAuthority,
  });
}
