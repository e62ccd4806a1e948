/** `__Host-`: Secure, host-only, path `/`. Browsers take it on http://localhost too, which counts as secure. */
export const SESSION_COOKIE = "__Host-sluice-session";
