/** The gateway's own addresses on the hostname of a workspace; everything else there belongs to its JupyterLab. */

/** Trades a one-time code of the portal for access. */
export const HANDOVER_PATH = "/_sluice/open";
/** Answers everybody with 204: whether this browser reaches the hostname at all. */
export const REACH_PATH = "/_sluice/reach";
/** The look of the portal's pages in this browser, `{ theme }`, for JupyterLab. */
export const THEME_PATH = "/_sluice/theme";
