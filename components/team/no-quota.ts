/** What every page says of a team that may borrow no GPU, and what a person can do. */
export const NO_QUOTA = "The team has no GPU quota";
export const NO_QUOTA_STEP = "Ask an admin to give it one.";
