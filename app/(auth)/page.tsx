import { redirect } from "next/navigation";
import { anyContext } from "../page-context.ts";

/** The first page: one's workspaces, or the way in. */
export default async function FirstPage() {
  const { principal } = await anyContext();
  redirect(principal.kind === "user" ? "/workspaces" : "/sign-in");
}
