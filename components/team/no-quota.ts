/** The text of every page for a team without a GPU quota, and the next step. */
export const NO_QUOTA = "The team has no GPU quota";
export const NO_QUOTA_STEP = "Ask an admin to give it one.";
