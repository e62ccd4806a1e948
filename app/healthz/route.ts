import { answersSoon } from "#server/db/answers-soon.ts";
import { database } from "#server/db/client.ts";

export const dynamic = "force-dynamic";

/** Whether the portal can serve pages: 200 when its database answers, 503 otherwise. For probes; tells nothing else. */
export async function GET(): Promise<Response> {
  try {
    await answersSoon(database().db);
    return Response.json({ status: "ok" });
  } catch {
    return Response.json({ status: "unavailable" }, { status: 503 });
  }
}
