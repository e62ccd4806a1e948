/** The gateway's own addresses on the hostname of a workspace; everything else there belongs to its JupyterLab. */

/** Trades a one-time code of the portal for access. */
export const HANDOVER_PATH = "/_sluice/open";
/** Answers everybody with 204: whether this browser reaches the hostname at all. */
export const REACH_PATH = "/_sluice/reach";
/**
 * What this browser may do here and how the portal looks in it, for JupyterLab: `{ refusal, theme }`. `refusal` is a
 * sentence for a viewer, null for who may work.
 */
export const ACCESS_PATH = "/_sluice/access";
