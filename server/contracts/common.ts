/** Pieces that many contracts share. Amounts are thousandths of a GPU, memory is bytes, times are ISO 8601 in UTC. */
import { z } from "zod";
import { typedLine, typedWord } from "./typed-name.ts";

/** `<prefix>-<26 base32 characters>`. */
export const idOf = (prefix: string) =>
  z.string().regex(new RegExp(`^${prefix}-[a-z2-7]{26}$`), `That is not an id of this kind (${prefix}-…).`);

export const userId = idOf("usr");
export const teamId = idOf("team");
export const workspaceId = idOf("ws");
export const sessionId = idOf("ses");
export const leaseId = idOf("lea");
export const accessTokenId = idOf("pat");
export const gpuServerId = idOf("gsv");
export const gpuId = idOf("gpu");
export const noticeId = idOf("ntc");
export const invitationId = idOf("otc");
export const datasetId = idOf("dst");

/** What the database can hold of what people ask about: the ISO year 0 is before its first one. */
export const instant = z.iso.datetime().refine((text) => !(Date.parse(text) < 0), "A time from 1970 on is needed.");

/** A count that the database keeps in four bytes. */
export const LARGEST_COUNT = 2_147_483_647;

/** Thousandths of a GPU: 500 is half of one. */
export const milli = z.int().min(0).max(100_000_000);

/** What quotas and leases name, e.g. `soft`, `h200`. */
export const gpuType = typedWord({
  max: 32,
  also: "-",
  sentence: "A GPU type is a short lower-case word, e.g. soft or h200.",
});

export const email = z.string().trim().toLowerCase().pipe(z.email("That is not an e-mail address.").max(254));
export const personName = typedLine({ max: 100, needed: "A name is needed." });
export const password = z.string().min(8, "A password has at least 8 characters.").max(256);
/** One that somebody types who has it already: it may be older than the rules for new ones. */
export const typedPassword = z.string().max(256);
export const oneTimeCode = z.string().regex(/^[A-Za-z0-9_-]{43}$/, "This link is not complete. Copy all of it.");

/** How often something was saved: an edit that names an older one is refused as a conflict. */
export const version = z.int().min(1);
/** The version that an edit was made on, 0: there was none yet; left out, it replaces whatever is there. */
export const editedVersion = z.int().min(0).optional();

/** A word or some: each must be in what is found. */
export const searchText = z.string().trim().normalize("NFC").max(100);

/** How many rows a page of an answer has. */
export const pageLimit = z.coerce.number().int().min(1).max(200);
export const pageSize = (fallback: number) => pageLimit.default(fallback);

/** No input, or no output. */
export const nothing = z.strictObject({});

export const errorBody = z.strictObject({
  error: z.strictObject({
    code: z.enum([
      "invalid",
      "too-large",
      "unauthenticated",
      "forbidden",
      "not-found",
      "conflict",
      "refused",
      "quota",
      "too-many",
      "unavailable",
      "internal",
    ]),
    /** For a person. */
    message: z.string(),
    detail: z.unknown().optional(),
  }),
});
